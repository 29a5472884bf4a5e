"""How jobs ended, and what to do then: failed(), skipped(), always(), and `on-failure`."""  # DU-1

import pytest

from mendflow.core.engine.messages import ForceFail
from mendflow.core.model.expr import Expr
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.flow import JobActivity, LinkSource, Parallel
from mendflow.core.model.ids import ItemId
from tests.core.engine.world import Play, started
from tests.formats.conftest import Complaints, Reader
from tests.formats.test_flows_run import World, failing

JOBS = """
jobs:
  good: one
  bad: two
  off: {run: three, if: "false"}
  hangs: {run: four, needs: bad}
  loop: {run: five, for-each: [1, 2]}
  undone: {run: six, compensation: seven}
  asks: {CONDITION, run: asked}
"""


@pytest.mark.parametrize(
    ("condition", "runs"),
    [
        ("if: failed(jobs.bad)", True),
        ("if: failed(jobs.good)", False),
        ("if: failed(jobs.off)", False),
        ("if: failed(jobs.hangs)", False),
        ("if: failed(jobs.loop)", True),
        ("if: failed(jobs.undone)", True),
        ("if: skipped(jobs.off)", True),
        ("if: skipped(jobs.hangs)", True),
        ("if: skipped(jobs.bad)", False),
        ("if: skipped(jobs.good)", False),
        ("if: has(jobs.good)", True),
        ("if: has(jobs.bad)", False),
        ("if: '!has(jobs.bad)'", True),
        ("if: '${{ failed(jobs.bad) && !skipped(jobs.good) }}'", True),
        ("if: failed(jobs.bad), needs: [bad, good]", True),
        ("if: always(), needs: [bad, off, good]", True),
        ("if: always() && failed(jobs.off), needs: [bad]", False),
        ("if: always() && failed(jobs.loop), needs: [bad]", True),
        ("if: has(jobs.good), needs: [bad]", False),
        ("if: has(jobs.bad) || true, needs: [bad]", False),
        ("needs: [bad]", False),
        ("after: [bad]", True),
        ("if: has(jobs.good) && jobs.good.outputs.did == 'one'", True),
        ("if: '!has(jobs.bad) || jobs.bad.outputs.did == 3', after: [bad]", True),
    ],
)
def test_a_condition_asks_how_a_job_ended(read: Reader, condition: str, runs: bool) -> None:
    world = World(read(JOBS.replace("CONDITION", condition)), failing("bad", "loop[1]", "undone"))
    assert ("asks" in world.items) is runs


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("failure()", "there is no function or name `failure`; whether a job failed is failed(jobs.NAME)"),
        ("success()", "whether a job ended well is has(jobs.NAME)"),
        ("failed()", "`failed` asks for a job: failed(jobs.NAME)"),
        ("failed('a')", "`failed` asks for a job: failed(jobs.NAME)"),
        ("failed(jobs.a.outputs)", "`failed` asks for a job: failed(jobs.NAME)"),
        ("skipped(jobs.nope)", "there is no job `nope` in this flow"),
        ("failed(jobs.b)", "`jobs.b` is asked for by `b` itself, before it has ended"),
    ],
)
def test_what_no_job_can_answer_is_refused(complaints: Complaints, condition: str, said: str) -> None:
    found = complaints(f'jobs:\n  a: x\n  b: {{run: y, if: "{condition}"}}\n')
    assert len(found) == 1 and said in found[0], found


def test_a_job_that_was_made_to_fail_has_failed_for_those_who_ask() -> None:
    names = {"failed": "failed(jobs.a)", "well": "has(jobs.a)", "skipped": "skipped(jobs.a)"}
    asking = tuple(
        JobActivity(name=name, command=name, when=Expr(text), targets=(f"a-{name}",)) for name, text in names.items()
    )
    first = JobActivity(name="a", command="x", sources=tuple(LinkSource(link=f"a-{name}") for name in names))
    play = started(Parallel(name="p", branches=(first, *asking), links=tuple(f"a-{name}" for name in names)))
    fault = Fault(name="f", category=Category.JOB, message="it was made to fail")
    play.do(ForceFail(item=ItemId("a"), fault=fault, proceed=True))
    assert play.jobs == ["failed"]


@pytest.mark.parametrize("also", ["", ", on-failure: tell", ", compensation: undo"])
def test_a_job_that_was_made_to_fail_has_failed_whatever_stands_around_it(read: Reader, also: str) -> None:
    told = "".join(f"  {name}: {{run: x, after: a, if: {name}(jobs.a)}}\n" for name in ("has", "failed", "skipped"))
    play = Play(read(f"jobs:\n  a: {{run: x{also}}}\n{told}"))
    fault = Fault(name="f", category=Category.JOB, message="it was made to fail")
    play.do(ForceFail(item=ItemId("a"), fault=fault, proceed=True))
    assert play.jobs == ["failed"]


@pytest.mark.parametrize(
    ("flow", "items"),
    [
        (
            "jobs: {a: {run: x, on-failure: 'tell ${{ fault.exit_code }}'}, b: {run: y, needs: a}}",
            ["a", "a.on-failure"],
        ),
        ("steps: [{name: a, run: x, on-failure: [one, two]}, y]", ["a", "a.on-failure.1", "a.on-failure.2"]),
        (
            "jobs: {a: {for-each: {n: [1, 2]}, run: x, on-failure: tell}}",
            ["a[0]", "a[1]", "a.on-failure[0]", "a.on-failure[1]"],
        ),
        ("jobs: {a: {run: x, on-failure: tell, if: 'false'}}", []),
    ],
)
def test_what_is_done_on_failure_is_done_and_the_job_stays_failed(read: Reader, flow: str, items: list[str]) -> None:
    world = World(read(flow), failing("a", "a[0]", "a[1]"))
    assert sorted(world.items) == sorted(items)
    assert world.end is not None and world.end.status == ("failed" if items else "completed")
    if items:
        assert world.end.fault is not None and world.end.fault.exit_code == 3


def test_nothing_is_done_on_failure_when_all_is_well(read: Reader) -> None:
    flow = "jobs: {a: {for-each: {n: [1]}, run: x, files: f, on-failure: tell}}\noutputs: {f: '${{ jobs.a.files.f }}'}"
    world = World(read(flow), failing())
    assert world.items == ["a[0]"] and len(world.outputs()["f"]) == 1


def test_a_word_of_the_flow_is_no_command(complaints: Complaints) -> None:
    [said] = complaints("jobs: {a: {run: x, on-failure: stop}}")
    assert said.startswith("1:32: here stands what to do when `a` has failed, a command or steps; `stop` is a word")
