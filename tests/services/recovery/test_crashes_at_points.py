"""The same for the points that hold a case or an item: before a case begins, before the end of an item counts, before
the end of a case is told. A crash at any write skips and repeats nothing there either."""

import asyncio
import tempfile
from collections import Counter
from collections.abc import Sequence as Many
from pathlib import Path

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from mendflow.core.model.flow import Call, Flow, Input, JobActivity
from mendflow.core.model.jobs import Job as JobDocument
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.repair import ExceptionType, Primitive
from mendflow.core.model.rules import RuleSet
from tests.examples import examples
from tests.services.recovery.kit import exlet, flow, mend, tree
from tests.services.recovery.test_crashes import Story, journal

WRITES = 71


def holding(name: str, variable: str) -> Flow:
    """An exlet that holds the case, asks a worklet, writes what that gives, and lets the case go on."""
    steps = (
        mend(Primitive.SUSPEND, "case"),
        Call(name="w", flow="worklet", inputs={"n": 1}),
        mend(Primitive.WRITE, "case", values={variable: "${{ jobs.w.outputs.seats }}"}),
        mend(Primitive.CONTINUE, "case"),
    )
    return exlet(name, *steps)


class InterceptedTypes(Story):
    what = flow(
        JobActivity(name="a", command="true", env={"N": "${{ inputs.n }}"}),
        inputs={"n": Input(default="0")},
        outputs={"a": "${{ jobs.a.outputs.n }}", "t": "${{ jobs.a.outputs.told }}", "x": 1},
    )
    rules = RuleSet(
        name="f",
        trees={
            ExceptionType.CASE_PRE: {"": tree(("true", "begin"))},
            ExceptionType.ITEM_POST: {"a": tree(("item.outputs.n < 5", "again"), ("true", "tell"))},
            ExceptionType.CASE_POST: {"": tree(("true", "end"))},
        },
        exlets={
            "again": exlet("again", mend(Primitive.RESTART)),
            "tell": exlet("tell", mend(Primitive.WRITE, values={"told": "yes"})),
            "begin": holding("begin", "n"),
            "end": holding("end", "x"),
        },
    )
    ends = "completed"

    def outcome(self, item: str, job: str) -> Outcome:
        """The first run gives too little, the second, under another serial, enough."""
        if item != "a":
            return Outcome(outputs=400)
        return Outcome(outputs={"n": 9 if job.endswith("/3") else 3})


async def play(crashes: Many[int]) -> int:
    with tempfile.TemporaryDirectory() as folder:
        story = InterceptedTypes(Path(folder), crashes)
        case = await story.tell()
        await story.world.runtime.ledger.settled()
        assert (await story.world.case(case)).outputs == {"a": 9, "t": "yes", "x": 400}
        jobs = [msgspec.json.decode(found.body, type=JobDocument) async for found in story.store.scan("job")]
        assert Counter(str(job.spec.item) for job in jobs) == Counter({"a": 2, "venue": 2})
        assert [job.spec.env for job in jobs if job.spec.item == "a"] == [{"N": "400"}, {"N": "400"}]
        assert set((await journal(story.store, case)).values()) == {1}
        decided = sorted((each.exlet, each.state) for each in await story.world.decisions(case))
        assert decided == [("again", "done"), ("begin", "done"), ("end", "done"), ("tell", "done")]
        assert [each.id async for each in story.store.scan("open-decision")] == []
        await story.world.server.close()
        return story.store.written


async def test_the_story_of_the_points_without_a_crash() -> None:
    # EX-1 EX-2
    assert WRITES * 0.7 < await play([]) < WRITES * 1.5


@settings(max_examples=examples(40), deadline=None)
@given(st.lists(st.integers(3, WRITES), min_size=1, max_size=4))
def test_a_crash_at_any_write_lets_no_point_be_passed_twice_or_not_at_all(crashes: list[int]) -> None:
    # EX-1 EX-4
    asyncio.run(play(crashes))
