"""How long a server may promise after its last beat, and how long others wait before they take its cases.

All follow from the pilots' lease. A job whose server and pilot die together runs again when the last promise that this
server can have made is over: one beat until the others have seen its last one, its time to promise, and one pilot's
lease. So the first two have a ceiling: whatever the lease, that is less than five seconds more than the lease."""

import msgspec


class ClusterTerms(msgspec.Struct, frozen=True, kw_only=True):
    beat_ms: int
    promise_ms: int  # after a beat was sent that was acknowledged
    takeover_ms: int  # of silence, by the clock of whoever listens


def cluster_terms(lease_ms: int) -> ClusterTerms:
    """A tick of a busy machine must not cost a server its cases: nothing is shorter than its floor, and there is more
    than a beat between what is promised and what is taken."""
    promise_ms = min(max(lease_ms // 10, 1_000), 3_000)
    return ClusterTerms(
        beat_ms=min(max(lease_ms // 30, 100), 1_000),
        promise_ms=promise_ms,
        takeover_ms=min(max(lease_ms // 3, 2_500), 10_000),
    )
