"""The shelf of a cache, whatever happens to it: it keeps to its size, keeps what is in use, and frees enough."""

from collections import Counter

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from mendflow.core.caching.policies import POLICIES
from mendflow.core.caching.space import CacheSpace
from tests.examples import examples

digests = st.sampled_from([f"file{number}" for number in range(12)])
sizes = st.integers(0, 60)


class ShelfLaws(RuleBasedStateMachine):
    """PJ-5 and PJ-11: the same laws for every policy."""

    @initialize(size=st.integers(0, 150), policy=st.sampled_from(sorted(POLICIES)))
    def begin(self, size: int, policy: str) -> None:
        self.shelf = CacheSpace(size, POLICIES[policy])
        self.there: dict[str, int] = {}
        self.promised: dict[str, int] = {}
        self.pins: Counter[str] = Counter()

    def make_room(self, required: int) -> bool:
        """Let go of what the shelf names; False if it says that there is no room."""
        free = self.shelf.free_bytes
        victims = self.shelf.victims(required)
        pinned = sum(bytes for digest, bytes in self.there.items() if self.pins[digest])
        possible = self.shelf.size_bytes - sum(self.promised.values()) - pinned
        if victims is None:
            assert required > possible, "it refuses only what cannot be"
            return False
        assert len(set(victims)) == len(victims)
        assert not any(self.pins[digest] for digest in victims), "a file in use is never evicted"
        freed = sum(self.there[digest] for digest in victims)
        assert free + freed >= required, "at least what is required is freed"
        if victims:
            assert free + freed - self.there[victims[-1]] < required, "and nothing goes that need not go"
        for digest in victims:
            self.shelf.evict(digest)
            del self.there[digest]
        return True

    @rule(digest=digests, bytes=sizes, cost=st.none() | st.floats(0, 1e6))
    def put(self, digest: str, bytes: int, cost: float | None) -> None:
        if digest not in self.there and self.make_room(bytes):
            self.shelf.put(digest, bytes, cost_ms=cost)
            self.there[digest] = bytes

    @rule(digest=digests, bytes=sizes)
    def reserve(self, digest: str, bytes: int) -> None:
        if digest not in self.there and digest not in self.promised and self.make_room(bytes):
            self.shelf.reserve(digest, bytes)
            self.promised[digest] = bytes

    @rule(digest=digests, arrives=st.booleans())
    def promise_ends(self, digest: str, arrives: bool) -> None:
        if digest not in self.promised:
            return
        bytes = self.promised.pop(digest)
        self.shelf.cancel_reservation(digest)
        if arrives and digest not in self.there and bytes <= self.shelf.free_bytes:
            self.shelf.put(digest, bytes)
            self.there[digest] = bytes

    @rule(digest=digests)
    def pin(self, digest: str) -> None:
        self.shelf.pin(digest)
        self.pins[digest] += 1

    @rule(digest=digests)
    def release(self, digest: str) -> None:
        if self.pins[digest]:
            self.pins[digest] -= 1
            assert self.shelf.release(digest) is (self.pins[digest] == 0)
            self.give_way()

    @precondition(lambda self: self.there)
    @rule(data=st.data())
    def use(self, data: st.DataObject) -> None:
        self.shelf.use(data.draw(st.sampled_from(sorted(self.there))))

    @precondition(lambda self: self.there)
    @rule(data=st.data())
    def drop(self, data: st.DataObject) -> None:
        digest = data.draw(st.sampled_from(sorted(self.there)))
        self.shelf.drop(digest)
        del self.there[digest]

    @rule(size=st.integers(0, 150))
    def resize(self, size: int) -> None:
        self.shelf.size_bytes = size
        self.give_way()

    def give_way(self) -> None:
        """As whoever has the files does: when the size is less than before, and when what was in use no longer is."""
        if not self.make_room(0):
            for digest in [digest for digest in self.there if not self.pins[digest]]:
                self.shelf.evict(digest)
                del self.there[digest]

    @invariant()
    def what_is_there_is_there(self) -> None:
        assert set(self.shelf) == set(self.there)
        assert len(self.shelf) == len(self.there)
        assert self.shelf.held_bytes == sum(self.there.values())
        assert self.shelf.promised_bytes == sum(self.promised.values())
        assert all(self.shelf.is_pinned(digest) for digest, pins in self.pins.items() if pins)

    @invariant()
    def the_size_is_never_exceeded(self) -> None:
        """But by what was in use or promised when it was made smaller: that cannot go, and nothing else is there."""
        kept = sum(bytes for digest, bytes in self.there.items() if self.pins[digest])
        total = self.shelf.held_bytes + self.shelf.promised_bytes
        assert total <= max(self.shelf.size_bytes, kept + self.shelf.promised_bytes)


TestShelfLaws = ShelfLaws.TestCase  # PJ-5, PJ-11
TestShelfLaws.settings = settings(max_examples=examples(150), stateful_step_count=60, deadline=None)
