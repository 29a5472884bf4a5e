"""Clients are told: at least once, under the same id, whatever happens to servers and receivers meanwhile."""

import asyncio
from collections.abc import Mapping

import msgspec
import pytest

from mendflow.core.model.alerts import Notification, WebhookSpec, WebhookView
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.flow import ForEach, JobActivity
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.repair import Primitive
from mendflow.core.model.repair_views import RepairRequest
from mendflow.services.base.delivery import SENDS_PER_ADDRESS_MAX, wait_ms
from mendflow.services.base.poster import NoPoster
from mendflow.services.observe.notifications.signing import EVENT_HEADER
from tests.services.cluster.kit import Cluster, ServerProcess, pilot_of, run
from tests.services.observe.test_monitors import alerts, until_alert
from tests.services.recovery.kit import exlet, flow, mend

FAILED = Outcome(fault=Fault(name="exitCode", category=Category.JOB, message="it ended with exit code 3"))

WELL = Outcome()


class Receiver(NoPoster):
    """Whoever gets notifications, by address. An address that stands in `dead` takes nothing."""

    def __init__(self) -> None:
        self.got: dict[str, list[Notification]] = {}
        self.tries: dict[str, int] = {}
        self.dead: set[str] = set()
        self.hangs_s = 0.0
        self.at_once = self.most_at_once = 0

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> str:
        self.tries[url] = self.tries.get(url, 0) + 1
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            if self.hangs_s:
                await asyncio.sleep(self.hangs_s)
        finally:
            self.at_once -= 1
        if url in self.dead:
            return "it is dead"
        told = msgspec.json.decode(body, type=Notification)
        assert headers[EVENT_HEADER] == told.id
        self.got.setdefault(url, []).append(told)
        return ""


async def servers(cluster: Cluster, receiver: Receiver, *names: str) -> list[ServerProcess]:
    started = await cluster.start(*names)
    for server in started:
        server.runtime.notifier._deliveries._poster = receiver
    return started


async def add_hook(server: ServerProcess, **wish: object) -> WebhookView:
    return await server.do(server.runtime.notifier.webhooks.add(msgspec.convert(wish, WebhookSpec), who="ann"))


async def ended_case(cluster: Cluster, server: ServerProcess, outcome: Outcome = WELL) -> str:
    await server.do(server.domain.deploy(flow(JobActivity(name="a", command="true"))))
    case = (await server.do(server.domain.start("f", {}, who="me"))).id
    pilot = pilot_of(cluster, server.name, pilot=f"of {case}")
    await pilot.sync(want=1)
    await pilot.exchange({"a": outcome})
    await pilot.sync(leaving=True)
    return case


async def feed(server: ServerProcess, after: int | None = 0) -> list[Notification]:
    return await server.do(server.runtime.notifier.feed.after(after, 100))


def test_the_end_of_a_case_is_told_to_who_wants_it_and_stands_in_the_feed() -> None:  # JS-8
    async def story(cluster: Cluster) -> None:
        receiver = Receiver()
        one, two = await servers(cluster, receiver, "one", "two")
        await add_hook(one, url="http://all", on=["completed", "failed"])
        await add_hook(one, url="http://failures", on=["failed"])
        await add_hook(one, url="http://another", flow="g")
        case = await ended_case(cluster, one)
        await asyncio.sleep(1)
        [told] = receiver.got.pop("http://all")
        assert (told.id, told.kind, told.case, told.flow, told.owner) == (f"{case}:end", "completed", case, "f", "me")
        assert receiver.got == {}
        assert await feed(two) == [told], "any server knows"
        assert await cluster.home(case) == "", "nothing is left to do"
        case = await ended_case(cluster, one, FAILED)
        await asyncio.sleep(1)
        assert {url: [each.kind for each in got] for url, got in receiver.got.items()} == {
            "http://all": ["failed"],
            "http://failures": ["failed"],
        }
        assert [each.serial for each in await feed(two)] == [1, 2, 3]
        assert sorted(each.kind for each in (await feed(two))[1:]) == ["alert", "failed"], "no rule took it up"

    run(story)


def test_items_are_told_of_only_to_who_asked_for_them() -> None:  # JS-8
    async def story(cluster: Cluster) -> None:
        receiver = Receiver()
        [one] = await servers(cluster, receiver, "one")
        await add_hook(one, url="http://items", on=["item-failed"])
        case = await ended_case(cluster, one, FAILED)
        await asyncio.sleep(1)
        [told] = receiver.got["http://items"]
        assert (told.case, told.item, told.message) == (case, "a", "it ended with exit code 3")
        assert sorted(each.kind for each in await feed(one)) == ["alert", "failed", "item-failed"]

    run(story)


def test_every_decision_is_told_when_it_is_made_and_when_it_is_over() -> None:  # JS-8, EX-8
    async def story(cluster: Cluster) -> None:
        receiver = Receiver()
        [one] = await servers(cluster, receiver, "one")
        await add_hook(one, url="http://decisions", on=["decision"])
        await add_hook(one, url="http://others", on=["decision"], flow="another")
        await ended_case(cluster, one, FAILED)
        await asyncio.sleep(1)
        [ignored] = receiver.got["http://decisions"]
        assert (ignored.state, ignored.message) == (
            "ignored",
            "abort of a (it ended with exit code 3): nothing is done",
        )
        case = (await one.do(one.domain.start("f", {}, who="me"))).id
        await one.do(one.domain.raise_trigger(case, "the river rises", who="ann"))
        tell = exlet("tell", mend(Primitive.NOTIFY, message="it rises"))
        await one.do(one.domain.mend(case, RepairRequest(flow=tell), who="bea"))
        await asyncio.sleep(1)
        waits, begun, over = receiver.got["http://decisions"][1:]
        assert {(each.kind, each.case, each.flow, each.owner) for each in (waits, begun, over)} == {
            ("decision", case, "f", "me")
        }
        assert [(each.state, each.result) for each in (waits, begun, over)] == [
            ("waiting", ""),
            ("running", ""),
            ("done", "told"),
        ]
        assert len({waits.id, begun.id, over.id}) == 3, "a receiver can tell them apart"
        assert over.message.startswith(f"case-external of {case}: tell (by bea): told")
        [stored] = [each for each in await one.do(one.domain.decisions()) if each.case == case]
        assert {each.decision for each in (waits, begun, over)} == {stored.id}
        assert "http://others" not in receiver.got, "a webhook of another flow hears nothing of it"

    run(story)


@pytest.mark.full
def test_a_receiver_that_is_away_gets_it_when_it_is_back_and_holds_up_no_other() -> None:  # JS-8
    async def story(cluster: Cluster) -> None:
        receiver = Receiver()
        receiver.dead.add("http://dead")
        [one] = await servers(cluster, receiver, "one")
        await add_hook(one, url="http://dead", on=["completed"])
        await add_hook(one, url="http://well", on=["completed"])
        case = await ended_case(cluster, one)
        await asyncio.sleep(1)
        assert len(receiver.got["http://well"]) == 1
        await asyncio.sleep(3600)
        assert 10 < receiver.tries["http://dead"] < 30, "the waits grow"
        receiver.dead.clear()
        await asyncio.sleep(700)
        assert [each.id for each in receiver.got["http://dead"]] == [f"{case}:end"]
        assert await cluster.home(case) == ""

    run(story)


def test_what_cannot_be_delivered_in_time_raises_an_alert_that_others_are_told_of() -> None:  # JS-5, JS-8
    async def story(cluster: Cluster) -> None:
        receiver = Receiver()
        receiver.dead.add("http://dead")
        [one] = await servers(cluster, receiver, "one")
        dead = await add_hook(one, url="http://dead", on=["completed", "alert"])
        await add_hook(one, url="http://well", on=["alert"])
        one.runtime.notifier._deliveries.patience_ms = 1_200_000
        case = await ended_case(cluster, one)
        await asyncio.sleep(1_900)
        alert = await until_alert(cluster, "not-delivered")
        assert alert.subject == dead.id and f"{case}:end" in alert.sentence and "--after 0" in alert.sentence
        await asyncio.sleep(30)
        assert [each.alert for each in receiver.got["http://well"]] == [alert.id]
        assert [each async for each in cluster.store.scan("notification")] == []

    run(story)


def test_a_server_killed_in_the_middle_of_a_delivery_leaves_it_to_another_under_the_same_id() -> None:  # JS-4, JS-8
    async def story(cluster: Cluster) -> None:
        receiver = Receiver()
        receiver.hangs_s = 5.0
        one, two = await servers(cluster, receiver, "one", "two")
        await add_hook(one, url="http://slow", on=["completed"])
        await asyncio.sleep(5)  # until the other has read it
        case = await ended_case(cluster, one)
        await cluster.until(lambda: _tried(receiver, "http://slow"))
        one.kill()
        await cluster.until_home(case, "two")
        await asyncio.sleep(30)
        assert {each.id for each in receiver.got["http://slow"]} == {f"{case}:end"}
        assert receiver.tries["http://slow"] == 2
        assert await cluster.home(case) == ""
        assert {each.id for each in await feed(two)} >= {f"{case}:end"}

    run(story)


async def _tried(receiver: Receiver, url: str) -> bool:
    return receiver.tries.get(url, 0) > 0


def test_a_server_killed_at_any_write_around_the_end_of_a_case_loses_no_notification() -> None:  # JS-4, JS-8
    for at in range(14):

        async def story(cluster: Cluster, at: int = at) -> None:
            receiver = Receiver()
            one, _ = await servers(cluster, receiver, "one", "two")
            await add_hook(one, url="http://all")
            await one.do(one.domain.deploy(flow(JobActivity(name="a", command="true"))))
            await asyncio.sleep(5)
            case = (await one.do(one.domain.start("f", {}, who="me"))).id
            pilot = pilot_of(cluster, "one", "two")
            await pilot.sync(want=1)
            left = [at]

            async def doom(writes: object) -> None:
                assert isinstance(writes, list)
                counted = [write for write in writes if getattr(write, "kind", "") != "server"]
                if len(counted) <= left[0]:
                    left[0] -= len(counted)
                    return
                await cluster.store.write(writes[: left[0]])
                one.kill()
                await asyncio.Event().wait()

            one.line.before = doom

            async def over() -> bool:
                try:
                    await pilot.exchange({"a": Outcome()} if pilot.held else {}, want=1)
                except Exception:  # whatever a dying server says, the pilot asks again
                    await asyncio.sleep(0.5)
                return bool(receiver.got.get("http://all"))

            await cluster.until(over, f"told, with the server killed at write {at}", within_s=120)
            assert {each.id for each in receiver.got["http://all"]} == {f"{case}:end"}

        run(story)


def test_no_reader_of_the_feed_misses_what_several_servers_write() -> None:  # JS-4, JS-8
    async def story(cluster: Cluster) -> None:
        one, two, three = await servers(cluster, Receiver(), "one", "two", "three")
        await one.do(one.domain.deploy(flow(JobActivity(name="a", command="true"))))
        await asyncio.sleep(5)
        expected = set()
        seen: list[Notification] = []

        async def follow() -> None:
            while True:
                seen.extend(await three.do(three.runtime.notifier.feed.after(len(seen), 3)))
                await asyncio.sleep(0.003)

        following = asyncio.ensure_future(follow())
        for _ in range(10):
            for server in (one, two, three):
                expected.add((await server.do(server.domain.start("f", {}, who="me"))).id)
        pilots = [pilot_of(cluster, name, pilot=name) for name in ("one", "two", "three")]
        await asyncio.gather(*(pilot.run_all(lambda _: Outcome()) for pilot in pilots))
        await asyncio.sleep(5)
        following.cancel()
        assert {str(each.case) for each in seen} == expected
        assert [each.serial for each in seen] == list(range(1, len(seen) + 1))

    run(story)


def deaf(server: ServerProcess) -> None:
    """Neither the notifier nor the monitor of this server hears of alerts: it is as if it died before that."""
    for each in (server.runtime.monitor, server.runtime.notifier):
        each._alert_raised = lambda alert: None  # type: ignore[method-assign]  # as if it died before it heard


def hearing(server: ServerProcess) -> None:
    for each in (server.runtime.monitor, server.runtime.notifier):
        delattr(each, "_alert_raised")


def test_an_alert_of_a_server_that_died_before_it_could_tell_is_told_by_another() -> None:  # JS-4, JS-8
    async def story(cluster: Cluster) -> None:
        receiver = Receiver()
        one, two, three = await servers(cluster, receiver, "one", "two", "three")
        await add_hook(two, url="http://all", on=["alert"])
        await asyncio.sleep(5)
        for server in (two, three):
            deaf(server)
        one.kill()
        alert = await until_alert(cluster, "server-gone")
        raiser, other = (two, three) if alert.raised_by == "two" else (three, two)
        assert not (await alerts(cluster))[0].is_notified
        hearing(other)
        raiser.kill()
        await asyncio.sleep(60)
        assert [each.alert for each in receiver.got["http://all"]].count(alert.id) == 1

    run(story)


def test_one_address_has_few_lanes() -> None:
    async def story(cluster: Cluster) -> None:
        receiver = Receiver()
        receiver.hangs_s = 3.0
        [one] = await servers(cluster, receiver, "one")
        await add_hook(one, url="http://slow", on=["completed"])
        await one.do(one.domain.deploy(flow(JobActivity(name="a", command="true"))))
        for _ in range(3 * SENDS_PER_ADDRESS_MAX):
            await one.do(one.domain.start("f", {}, who="me"))
        await pilot_of(cluster, "one").run_all(lambda _: Outcome())
        await asyncio.sleep(60)
        assert len(receiver.got["http://slow"]) == 3 * SENDS_PER_ADDRESS_MAX
        assert receiver.most_at_once == SENDS_PER_ADDRESS_MAX

    run(story)


def test_waits_double_and_are_spread_and_have_an_end() -> None:
    assert [wait_ms(tries, 1.0) for tries in (1, 2, 3)] == [1_000, 2_000, 4_000]
    assert wait_ms(2, 0.0) == 1_000
    assert wait_ms(99, 1.0) == 600_000


def test_a_webhook_added_at_one_server_is_known_to_all_and_its_secret_is_shown_to_nobody() -> None:
    async def story(cluster: Cluster) -> None:
        one, two = await servers(cluster, Receiver(), "one", "two")
        view = await add_hook(one, url="http://x", secret="hush")
        await asyncio.sleep(5)
        hook = two.runtime.notifier.webhooks.find(view.id)
        assert hook is not None and hook.view() == view and view.signed
        assert "hush" not in repr(view) + repr(hook)
        await two.do(two.runtime.notifier.webhooks.remove(view.id))
        await asyncio.sleep(5)
        assert one.runtime.notifier.webhooks.find(view.id) is None

    run(story)


def test_notices_of_several_servers_are_one_list_and_no_server_stumbles_over_anothers() -> None:  # JS-4
    async def story(cluster: Cluster) -> None:
        one, two = await servers(cluster, Receiver(), "one", "two")
        for turn in range(20):
            one.process.deliver(lambda turn=turn: one.runtime.notices.post(f"one {turn}"))
            two.process.deliver(lambda turn=turn: two.runtime.notices.post(f"two {turn}"))
            await asyncio.sleep(0.001)
        await asyncio.sleep(1)
        assert one.server.health().status == two.server.health().status == "ok"
        told = {each.message for each in await two.do(two.domain.notices(100))}
        assert told == {f"{name} {turn}" for name in ("one", "two") for turn in range(20)}

    run(story)


def test_the_end_of_a_failed_case_names_the_job_that_failed() -> None:  # JS-4
    async def story(cluster: Cluster) -> None:
        receiver = Receiver()
        [one] = await servers(cluster, receiver, "one")
        await add_hook(one, url="http://failures", on=["failed"])
        loop = ForEach(
            name="loop",
            variable="s",
            items=[{"sample": "trt_2"}],
            body=JobActivity(name="filter", command="echo ${{ quote(s.sample) }}"),
        )
        await one.do(one.domain.deploy(flow(loop)))
        case = (await one.do(one.domain.start("f", {}, who="me"))).id
        pilot = pilot_of(cluster, "one")
        await pilot.sync(want=1)
        [held] = pilot.held
        await pilot.exchange({held.spec.item: FAILED})

        async def heard() -> bool:
            return "http://failures" in receiver.got

        await cluster.until(heard, "it is told")
        [told] = receiver.got["http://failures"]
        assert (told.case, told.item) == (case, held.spec.item)
        assert told.message.startswith(f"{held.spec.item} (trt_2): it ended with exit code 3"), told.message

    run(story)
