"""Named limits under any order of requests, ends and changes of the counts: what is held never exceeds a count by a new
grant, and nothing stays held."""

from hypothesis import given
from hypothesis import strategies as st

from mendflow.core.model.ids import JobId
from mendflow.core.model.named_limits import LimitDocument
from mendflow.core.scheduling.limit_decisions import Grantor, HoldRequest, decide_holds, without_hold

NAMES = ("a", "b")
AMOUNTS = st.dictionaries(st.sampled_from(NAMES), st.integers(1, 3), min_size=1)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), st.lists(st.tuples(st.integers(0, 9), AMOUNTS), min_size=1, max_size=4)),
        st.tuples(st.just("end"), st.integers(0, 9)),
        st.tuples(st.just("set"), st.tuples(st.sampled_from(NAMES), st.integers(0, 5))),
    ),
    max_size=30,
)


@given(STEPS)
def test_no_grant_exceeds_a_limit_and_every_end_gives_back(steps: list[tuple[str, object]]) -> None:
    documents = {name: LimitDocument(name=name, count=2) for name in NAMES}
    held: dict[JobId, tuple[tuple[str, int], ...]] = {}
    for now, (what, detail) in enumerate(steps):
        if what == "ask":
            assert isinstance(detail, list)
            fresh = {JobId(f"c/{number}"): tuple(sorted(amounts.items())) for number, amounts in detail}
            wanted = [
                HoldRequest(job=job, fence=1, named=named, since=now) for job, named in fresh.items() if job not in held
            ]
            decision = decide_holds(documents, wanted, Grantor("s", 1000), now=now)
            documents |= decision.changed
            held |= {job: fresh[job] for job in decision.granted}
            for name in {name for job in decision.granted for name, _ in fresh[job]}:
                assert documents[name].free >= 0, "granted more than there is"
        elif what == "end":
            job = JobId(f"c/{detail}")
            for name, _ in held.pop(job, ()):
                documents[name] = without_hold(documents[name], job, 1, now=now)
        else:
            assert isinstance(detail, tuple)
            name, count = detail
            documents[name] = LimitDocument(name=name, count=count, holds=documents[name].holds)
        for name, document in documents.items():
            assert document.used == sum(dict(named).get(name, 0) for named in held.values())
