"""How long a server may make promises after its last heartbeat, and how long others wait before they take over its
cases.

All follow from the lease of pilots. If a server and a pilot die together, the job runs again when the last promise that
this server can have made is over: one interval until the others have seen its last heartbeat, the time that it may
promise, and one pilot's lease. The first two have a ceiling: together less than five seconds, whatever the lease."""

import msgspec


class ClusterTerms(msgspec.Struct, frozen=True, kw_only=True):
    beat_ms: int
    promise_ms: int  # after a heartbeat was sent that was acknowledged
    takeover_ms: int  # of silence, by the clock of the server that watches


def cluster_terms(lease_ms: int) -> ClusterTerms:
    """A busy machine that stalls for a moment must not lose its cases: nothing is shorter than its floor, and the time
    to take over exceeds the time to promise by more than one heartbeat."""
    promise_ms = min(max(lease_ms // 10, 1_000), 3_000)
    return ClusterTerms(
        beat_ms=min(max(lease_ms // 30, 100), 1_000),
        promise_ms=promise_ms,
        takeover_ms=min(max(lease_ms // 3, 2_500), 10_000),
    )
