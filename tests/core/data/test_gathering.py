"""Files come, batches are made of them, each becomes a case: by count, by size, by time, and at the close."""

from collections.abc import Iterable

import pytest

from mendflow.core.data.data_set import (
    DataSet,
    add_files,
    batch_inputs,
    batch_key,
    batches_due,
    close_set,
    define_set,
    evolve,
    may_close,
    next_due,
    retry_batch,
    set_of_batch_key,
    waits_for,
)
from mendflow.core.data.set_specs import check_set_spec, describe_gathering
from mendflow.core.model.data_sets import (
    BatchEnded,
    BatchMade,
    BatchStarted,
    BatchStatus,
    DataSetSpec,
    Gathering,
    SetEvent,
    SetFact,
)
from mendflow.core.model.errors import Conflict, InvalidRequest, NotFound
from mendflow.core.model.ids import CaseId
from mendflow.core.model.values import FileRef


def file(name: str, size: int = 10) -> FileRef:
    return FileRef(sha256=name.ljust(64, "0"), bytes=size, name=name, logical=f"/store/{name}")


class Told:
    """A set, and the clock of whoever tells it things."""

    def __init__(self, *rules: Gathering, after: tuple[str, ...] = (), name: str = "raw") -> None:
        self.state = DataSet(name=name)
        self.now = 1_000
        self.tell(define_set(self.state, DataSetSpec(name=name, gatherings=rules, after=after), by="me"))

    def tell(self, facts: Iterable[SetFact]) -> None:
        for fact in facts:
            evolve(self.state, SetEvent(self.now, fact))

    def come(self, *files: FileRef) -> list[tuple[int, str]]:
        """Let files come, and say which batches were made."""
        self.tell(add_files(self.state, files))
        return self.look()

    def look(self, after_ms: int = 0) -> list[tuple[int, str]]:
        self.now += after_ms
        made = batches_due(self.state, self.now)
        self.tell(made)
        return [(each.files, each.why) for each in made if isinstance(each, BatchMade)]

    def close(self) -> list[tuple[int, str]]:
        self.tell(close_set(self.state, by="me"))
        return self.look()

    def end(self, gathering: str, number: int, status: BatchStatus = "completed") -> None:
        attempt = self.state.batch(gathering, number).attempt
        self.tell([BatchStarted(gathering=gathering, number=number, attempt=attempt, case=CaseId(f"case-{number}"))])
        self.tell([BatchEnded(gathering=gathering, number=number, attempt=attempt, status=status)])


EACH = Gathering(name="each", flow="f", count=1)
THREE = Gathering(name="three", flow="f", count=3)
LARGE = Gathering(name="large", flow="f", size_bytes=100)
SOON = Gathering(name="soon", flow="f", wait_ms=500)
ALL = Gathering(name="all", flow="f")


def test_a_file_that_comes_starts_a_case_and_told_again_it_does_not() -> None:
    told = Told(EACH)  # PJ-9
    assert told.come(file("a")) == [(1, "count")]
    assert told.come(file("a")) == []
    assert told.come(file("a"), file("b"), file("b")) == [(1, "count")]


def test_files_are_gathered_by_count() -> None:
    told = Told(THREE)  # PJ-9
    assert told.come(file("a"), file("b")) == []
    assert told.come(file("c"), file("d")) == [(3, "count")]
    assert [each.name for each in told.state.batch("three", 1).files] == ["a", "b", "c"]
    assert [each.file.name for each in told.state.pools["three"].waiting] == ["d"]


def test_files_are_gathered_by_size() -> None:
    told = Told(LARGE)  # PJ-9
    assert told.come(file("a", 60)) == []
    assert told.come(file("b", 60), file("c", 200), file("d", 1)) == [(2, "size"), (1, "size")]


def test_what_waits_too_long_is_handed_on_though_it_is_little() -> None:
    told = Told(SOON)
    assert told.come(file("a")) == []
    told.look(after_ms=300)
    assert told.come(file("b")) == []
    assert next_due(told.state) == 1_500, "the first file counts, not the last"
    assert told.look(after_ms=199) == []
    assert told.look(after_ms=1) == [(2, "time")]
    assert next_due(told.state) == 0


def test_closing_hands_on_what_is_left_and_what_comes_later_starts_nothing() -> None:
    told = Told(THREE, ALL)
    told.come(file("a"), file("b"), file("c"), file("d"))
    assert told.close() == [(1, "closed"), (4, "closed")]
    assert told.come(file("e")) == []
    assert told.state.late == 1
    assert told.close() == []


def test_a_set_without_files_closes_without_a_batch() -> None:
    assert Told(ALL).close() == []


def test_a_gathering_that_is_added_later_sees_the_files_that_are_there() -> None:
    told = Told()
    told.come(file("a"), file("b"))
    told.tell(define_set(told.state, DataSetSpec(name="raw", gatherings=(EACH,)), by="me"))
    assert told.look() == [(1, "count"), (1, "count")]


def test_a_gathering_that_is_changed_goes_on_where_it_was() -> None:
    told = Told(THREE)
    told.come(file("a"), file("b"), file("c"), file("d"))
    two = Gathering(name="three", flow="other", count=2)
    told.tell(define_set(told.state, DataSetSpec(name="raw", gatherings=(two,)), by="me"))
    assert told.come(file("e")) == [(2, "count")]
    assert told.state.batch("three", 1).rule.flow == "f", "a batch stays what it was made for"
    assert told.state.batch("three", 2).rule.flow == "other"
    assert define_set(told.state, DataSetSpec(name="raw", gatherings=(two,)), by="me") == []


def test_a_gathering_that_is_taken_away_makes_no_more_batches() -> None:
    told = Told(THREE)
    told.come(file("a"), file("b"))
    told.tell(define_set(told.state, DataSetSpec(name="raw"), by="me"))
    assert told.come(file("c")) == []
    assert told.close() == []


def test_a_set_closes_after_those_before_it_have_completed_what_they_started() -> None:
    before, after = Told(EACH), Told(ALL, after=("raw",), name="merged")

    def find(name: str) -> DataSet | None:
        return before.state if name == "raw" else None

    before.come(file("a"))
    assert not may_close(after.state, find)
    before.close()
    assert list(waits_for(after.state, find)) == ["batch each/1 of data set raw is waiting"]
    before.end("each", 1, "failed")
    [reason] = waits_for(after.state, find)
    assert reason.endswith("try it again with mendflow data sets retry raw each/1")
    before.tell(retry_batch(before.state, "each", 1, by="me"))
    before.end("each", 1)
    assert before.state.is_drained
    assert may_close(after.state, find)
    assert not may_close(after.state, lambda name: None), "a set that is not there yet may still get files"


def test_a_set_is_not_over_while_files_wait_that_the_close_hands_on() -> None:
    told = Told(ALL)
    told.come(file("a"))
    told.tell(close_set(told.state, by="me"))
    assert not told.state.is_drained, "a server may be lost between the two"
    assert list(waits_for(told.state, lambda name: None)) == ["1 files of data set raw wait to be handed on by all"]
    told.look()
    told.end("all", 1)
    assert told.state.is_drained


def test_only_what_failed_can_be_tried_again() -> None:
    told = Told(EACH)
    told.come(file("a"))
    with pytest.raises(Conflict, match="is waiting"):
        retry_batch(told.state, "each", 1, by="me")
    with pytest.raises(NotFound, match="no batch each/2"):
        retry_batch(told.state, "each", 2, by="me")


def test_the_inputs_of_a_case_say_which_batch_it_is_and_stay_the_same_when_it_is_tried_again() -> None:
    inputs = {"in": "${{ files }}", "out": "/store/merged/${{ batch.name }}.dat", "n": "${{ batch.number }}", "k": 7}
    told = Told(Gathering(name="merge", flow="f", count=2, inputs=inputs))
    told.come(file("a"), file("b"))
    batch = told.state.batch("merge", 1)
    given = batch_inputs(told.state, batch)
    assert given == {
        "in": [file("a").as_value(), file("b").as_value()],
        "out": "/store/merged/raw-merge-1.dat",
        "n": 1,
        "k": 7,
    }
    first = batch_key(told.state, batch)
    assert set_of_batch_key(first) == "raw"
    told.end("merge", 1, "failed")
    told.tell(retry_batch(told.state, "merge", 1, by="me"))
    batch = told.state.batch("merge", 1)
    assert batch_key(told.state, batch) != first
    assert batch_inputs(told.state, batch) == given


def test_an_end_that_is_told_late_does_not_end_the_next_attempt() -> None:
    told = Told(EACH)
    told.come(file("a"))
    told.end("each", 1, "failed")
    told.tell(retry_batch(told.state, "each", 1, by="me"))
    told.tell([BatchStarted(gathering="each", number=1, attempt=2, case=CaseId("case-b"))])
    told.tell([BatchEnded(gathering="each", number=1, attempt=1, status="completed")])
    assert told.state.batch("each", 1).status == "running"


def test_without_inputs_a_flow_gets_the_file_or_the_files() -> None:
    told = Told(EACH, THREE)
    told.come(file("a"), file("b"), file("c"))
    assert batch_inputs(told.state, told.state.batch("each", 2)) == {"file": file("b").as_value()}
    assert batch_inputs(told.state, told.state.batch("three", 1)).keys() == {"files"}


@pytest.mark.parametrize(
    ("wish", "reason"),
    [
        (DataSetSpec(name="a/b"), "is not a valid name for a data set"),
        (DataSetSpec(name="a", after=("a",)), "after itself"),
        (DataSetSpec(name="a", gatherings=(EACH, EACH)), "two gatherings"),
        (DataSetSpec(name="a", gatherings=(Gathering(name="g", flow=""),)), "names no flow"),
        (DataSetSpec(name="a", gatherings=(Gathering(name="g", flow="f", count=-1),)), "count is -1"),
        (DataSetSpec(name="a", gatherings=(Gathering(name="g", flow="f", count=10_001),)), "at most 10,000"),
        (DataSetSpec(name="a", gatherings=(Gathering(name="g", flow="f", inputs={"x": "${{ jobs.a }}"}),)), "ask for"),
        (DataSetSpec(name="a", gatherings=(Gathering(name="g", flow="f", inputs={"x": "${{ 1 + }}"}),)), "gathering g"),
    ],
)
def test_a_set_that_makes_no_sense_is_refused(wish: DataSetSpec, reason: str) -> None:
    with pytest.raises(InvalidRequest, match=reason):
        check_set_spec(wish)


def test_a_rule_is_told_in_words() -> None:
    assert describe_gathering(EACH) == "for each file"
    assert describe_gathering(ALL) == "the end"
    assert (
        describe_gathering(Gathering(name="g", flow="f", count=4, wait_ms=60_000))
        == "4 files or 60 s after the first or the end"
    )
