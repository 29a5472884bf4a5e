"""Whoever writes a schedule is told when it would be due, or what is wrong, before anything is stored."""

from mendflow.core.model.schedules import ScheduleSpec
from mendflow.core.schedules.due_times import DueTimes
from mendflow.services.schedules.zones import zone_named
from mendflow.sim.machines import BEGINNING
from tests.services.cluster.kit import Cluster, run

HOUR = 3_600_000
NIGHTLY = ScheduleSpec(name="", flow="", cron="30 2 * * *", timezone="Europe/Berlin")


def test_the_next_times_are_told_or_what_is_wrong_with_which_field() -> None:  # DU-6
    async def story(cluster: Cluster) -> None:
        [server] = await cluster.start("A")
        ask, start = server.domain.due_times, BEGINNING + HOUR
        nightly = await server.do(ask("30 2 * * *", timezone="Europe/Berlin"))
        assert nightly.times == DueTimes(NIGHTLY, zone_named("Europe/Berlin")).between(BEGINNING, 2 * BEGINNING, 5)
        assert len(nightly.times) == 5 and not nightly.flaws
        first = DueTimes(NIGHTLY, zone_named("Europe/Berlin"))
        assert nightly.values["time"] == first.text(nightly.times[0]) and "name" not in nightly.values
        assert nightly.values["date"] == str(nightly.values["time"])[:10] > str(nightly.values["previous"])[:10]
        hourly = await server.do(ask(every_ms=HOUR, starts_at=start, ends_at=start + HOUR))
        assert hourly.times == [start, start + HOUR]
        wrong = await server.do(ask("30 25 * * *", timezone="Europe/Berlni"))
        assert [each.field for each in wrong.flaws] == ["cron", "timezone"] and not wrong.times and not wrong.values
        assert wrong.flaws[0].reason.startswith("the hour, `25`")
        assert wrong.flaws[1].reason == "there is no time zone `Europe/Berlni`; did you mean Europe/Berlin?"
        assert [each.field for each in (await server.do(ask())).flaws] == ["cron"]

    run(story)
