"""What the stream of events keeps in memory, and of whom it hears."""

import asyncio
from contextlib import aclosing

from mendflow.core.model.ids import CaseId
from mendflow.services.base.events import ENDED_CASES_MAX, EventStream
from tests.patience import PATIENCE_S


def run(stream: EventStream, name: str, at: int) -> CaseId:
    case = CaseId(name)
    stream.tell(at, "case", case, state="running")
    stream.tell(at, "case", case, state="completed")
    stream.ended(case)
    return case


def test_changes_of_cases_that_ended_long_ago_are_forgotten() -> None:
    stream = EventStream(0)
    stream.tell(1, "case", CaseId("live"), state="running")
    stream.begun(CaseId("loaded"))
    cases = [run(stream, f"c-{number}", number) for number in range(1, ENDED_CASES_MAX + 11)]
    assert [case for case in cases if not stream.has_ended(case)] == cases[:10]
    assert stream.covers_since(CaseId("live"), 10_000), "a case that lives is not forgotten"
    assert not stream.covers_since(CaseId("loaded"), 10_000), "nothing was told of it yet"


def test_what_is_told_of_a_case_after_its_end_is_forgotten_too() -> None:
    stream, later = EventStream(0), 100
    case = run(stream, "first", 1)
    others = [run(stream, f"c-{number}", number) for number in range(ENDED_CASES_MAX)]
    assert not stream.has_ended(case)
    stream.tell(later, "alert", case, message="its pilot is lost")
    assert stream.covers_since(case, 2**60)
    for number in range(ENDED_CASES_MAX):
        run(stream, f"d-{number}", number)
    assert not stream.covers_since(case, 2**60) and not stream.has_ended(others[-1])


def test_a_case_that_was_reopened_is_kept_like_any_that_lives() -> None:
    stream = EventStream(0)
    case = run(stream, "again", 1)
    stream.tell(2, "case", case, state="running", message="reopened")
    for number in range(ENDED_CASES_MAX + 1):
        run(stream, f"c-{number}", number)
    assert stream.covers_since(case, 2**60)


async def test_a_listener_that_leaves_late_takes_no_newer_one_along() -> None:
    stream, case = EventStream(0), CaseId("c")
    old = stream.listen(case, 0, kind="", over=False)
    stream.tell(1, "case", case, state="running")
    assert (await anext(old)).state == "running"
    stream.ended(case)
    stream.tell(2, "case", case, state="running", message="reopened")
    async with aclosing(stream.listen(case, 2_000, kind="", over=False)) as newer:
        heard = asyncio.ensure_future(anext(newer))
        await asyncio.sleep(0)
        await old.aclose()
        stream.tell(3, "item", case, state="completed")
        assert (await asyncio.wait_for(heard, PATIENCE_S)).state == "completed"
