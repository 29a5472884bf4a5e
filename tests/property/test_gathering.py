"""Whatever comes in whatever order, and is told however often: each file is in one batch of each gathering."""

from collections import Counter

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from mendflow.core.data.data_set import DataSet, add_files, batches_due, close_set, define_set, evolve
from mendflow.core.model.data_sets import DataSetSpec, Gathering, SetEvent, SetFact
from mendflow.core.model.values import FileRef

RULES = st.builds(
    Gathering,
    name=st.just("g"),
    flow=st.just("f"),
    count=st.integers(0, 5),
    size_bytes=st.sampled_from([0, 0, 1, 50, 200]),
    wait_ms=st.sampled_from([0, 0, 10, 100]),
)
STEPS = st.lists(st.tuples(st.lists(st.integers(0, 30), max_size=6), st.integers(0, 60)), max_size=12)


def file(number: int) -> FileRef:
    return FileRef(sha256=f"{number:064x}", bytes=number * 7, name=str(number), logical=f"/{number}")


@given(RULES, STEPS)
def test_every_file_is_in_one_batch_and_batches_keep_their_rule(
    rule: Gathering, steps: list[tuple[list[int], int]]
) -> None:
    # PJ-9
    state, journal, now = DataSet(name="s"), list[SetEvent](), 1

    def tell(facts: list[SetFact]) -> None:
        for fact in facts:
            journal.append(SetEvent(now, fact))
            evolve(state, journal[-1])

    tell(define_set(state, DataSetSpec(name="s", gatherings=(rule,)), by=""))
    for numbers, later in steps:
        now += later
        tell(add_files(state, map(file, numbers)))
        tell(batches_due(state, now))
        assert batches_due(state, now) == [], "made once"
        waits = state.pools["g"].waiting
        assert not (rule.count and len(waits) >= rule.count)
        assert not (rule.size_bytes and sum(each.file.bytes for each in waits) >= rule.size_bytes)
        assert not (rule.wait_ms and waits and waits[0].since + rule.wait_ms <= now)
    tell(close_set(state, by=""))
    tell(batches_due(state, now))
    batches = state.pools["g"].batches
    taken = Counter(each.logical for batch in batches for each in batch.files)
    assert set(taken.values()) <= {1}
    assert taken.keys() == {f"/{number}" for numbers, _ in steps for number in numbers}
    for batch in batches:
        assert batch.files
        assert not rule.count or batch.count <= rule.count
        assert not rule.size_bytes or sum(each.bytes for each in batch.files[:-1]) < rule.size_bytes, (
            "no file more than wanted"
        )
    read = DataSet(name="s")
    for entry in msgspec.json.decode(msgspec.json.encode(journal), type=list[SetEvent]):
        evolve(read, entry)
    assert read == state, "the journal gives the same again"
