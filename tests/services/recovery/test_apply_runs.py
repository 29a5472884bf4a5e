"""What is told, and kept, of applications of rules to groups of failures."""

from pathlib import Path

from mendflow.core.model.flow import JobActivity
from mendflow.core.model.ids import CaseId
from mendflow.core.model.principals import EVERYTHING, Sight
from mendflow.services.recovery.apply_runs import IDS_KEPT, RUNS_KEPT, ApplyRun, ApplyRuns
from mendflow.services.runtime.server import ServerSettings
from mendflow.stores.memory import MemoryStore
from tests.services.recovery.kit import FAILED, World, flow


def begun(runs: ApplyRuns, group: str, *projects: str) -> ApplyRun:
    run = ApplyRun(group=group, by="ann", started_at=1, projects={*projects} or {"default"})
    runs.begin(run)
    return run


def test_ex_7_one_that_runs_is_told_however_many_begin_after_it() -> None:
    runs = ApplyRuns()
    slow = begun(runs, "slow")
    for number in range(2 * RUNS_KEPT):
        runs.end(begun(runs, f"g{number}"), 2)
    assert runs.of("slow", EVERYTHING) == [slow]
    known = [number for number in range(2 * RUNS_KEPT) if runs.of(f"g{number}", EVERYTHING)]
    assert known == [*range(RUNS_KEPT, 2 * RUNS_KEPT)]
    runs.end(slow, 3)
    assert runs.of("slow", EVERYTHING) == [slow], "who began it asks what came of it"


def test_ex_7_of_those_that_are_over_so_many_failures_are_kept() -> None:
    runs, half = ApplyRuns(), [f"f-{number}/1" for number in range(IDS_KEPT // 2)]
    for group in ("first", "second", "third", "fourth"):
        run = begun(runs, group)
        run.add_left(half, "default", "no-rule")
        run.add_taken_up(["f-x/1"], "default")
        runs.end(run, 2)
    assert [group for group in ("first", "second", "third", "fourth") if runs.of(group, EVERYTHING)] == [
        "third",
        "fourth",
    ]


def test_ex_7_failures_are_the_one_unit_of_what_is_told() -> None:
    run = begun(ApplyRuns(), "g", "red", "blue")
    run.total.update({"red": 3, "blue": 2})
    run.add_case(CaseId("f-1"), "red")
    run.add_taken_up(["f-1/1", "f-1/2"], "red")
    run.add_refused(["g-1/1"], "blue", "it is not over")
    run.done.update({"red": 2, "blue": 1})
    told = run.progress_in(EVERYTHING)
    assert (told.total, told.done) == (5, len(told.taken_up) + len(told.left) + len(told.refused)) == (5, 3)
    seen = run.progress_in(Sight(frozenset({"blue"})))
    assert (seen.total, seen.done, seen.taken_up, seen.cases, seen.refused) == (
        2,
        1,
        [],
        [],
        {"g-1/1": "it is not over"},
    )


async def test_ex_7_what_waits_in_a_case_that_goes_on_is_told_with_the_reason(tmp_path: Path) -> None:
    world = World(MemoryStore(), tmp_path, ServerSettings(files_roots=None))  # no rules say how to try again
    await world.server.open()
    cases = []
    for _ in range(2):
        cases.append(await world.start(flow(JobActivity(name="a", command="true"))))
        await world.take()
        await world.report(a=FAILED)
        await world.until_status(cases[-1], "failed")
    [group] = await world.domain.failures()
    applied = await world.domain.apply_rules(group.id, who="ann", retry=True)
    assert (sorted(applied.cases), applied.taken_up, applied.left) == (sorted(cases), [], [])
    assert {id.partition("/")[0] for id in applied.refused} == {*cases}
    assert all("there is no exlet 'try-again'" in reason for reason in applied.refused.values())
    told = await world.domain.apply_progress(group.id)
    assert (told.running, told.total, told.done) == (False, 2, 2)
    await world.server.close()
