"""How large a cache may be.

A pilot is given space, and a part of it, the threshold, stays free for what its jobs write. Pilots on one host that
share by hard links pool their space and leave the threshold free once: each file counts once, however many of them have
linked it."""

DEFAULT_SPACE_BYTES = 10 << 30
DEFAULT_THRESHOLD_SHARE = 10
"""The default threshold: a tenth of the space."""


def cache_bytes(space_bytes: int, threshold_bytes: int, *, pilots: int = 1) -> int:
    """How much a cache may hold, for one pilot or for several on one host together."""
    assert pilots >= 1, "the pilot itself counts as one"
    return max(0, space_bytes * pilots - threshold_bytes)


def share_of_host(space_bytes: int, threshold_bytes: int, *, pilots: int, elsewhere_bytes: int) -> int:
    """How much one of several sharing pilots may have in its own cache. `elsewhere_bytes` is what the others have and
    this one has not linked. Never less than it would have alone, so that the first pilot does not take everything; a
    cache with more than that shrinks as the others grow."""
    together = cache_bytes(space_bytes, threshold_bytes, pilots=pilots)
    return max(cache_bytes(space_bytes, threshold_bytes), together - elsewhere_bytes)


def limit_to_disk(size_bytes: int, *, held_bytes: int, free_bytes: int, threshold_bytes: int) -> int:
    """The same on a disk that others fill too: the cache grows only while the threshold stays free, and shrinks
    otherwise."""
    return max(0, min(size_bytes, held_bytes + free_bytes - threshold_bytes))
