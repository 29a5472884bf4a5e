"""How large a cache may be.

A pilot is given space, and a part of it, the threshold, stays free for what its jobs write. Pilots of one host that
share by hard links have the space of all of them and leave the threshold free once: each file counts once, however
many of them have a link to it."""

DEFAULT_SPACE_BYTES = 10 << 30
DEFAULT_THRESHOLD_SHARE = 10
"""What stays free if nobody says how much: a tenth of the space."""


def cache_bytes(space_bytes: int, threshold_bytes: int, *, pilots: int = 1) -> int:
    """What caches may hold: of one pilot by itself, or of so many on one host together."""
    assert pilots >= 1, "the pilot itself is one of them"
    return max(0, space_bytes * pilots - threshold_bytes)


def share_of_host(space_bytes: int, threshold_bytes: int, *, pilots: int, elsewhere_bytes: int) -> int:
    """What one of several pilots that share may have in its own cache. `elsewhere_bytes` is what the others have and it
    has no link to. Never less than it would have alone, so that who came first does not leave the others nothing; who
    has more than that gives way as the others grow."""
    together = cache_bytes(space_bytes, threshold_bytes, pilots=pilots)
    return max(cache_bytes(space_bytes, threshold_bytes), together - elsewhere_bytes)


def limit_to_disk(size_bytes: int, *, held_bytes: int, free_bytes: int, threshold_bytes: int) -> int:
    """The same on a disk that others fill too: growing must leave the threshold free, and where it is not free any
    more, the cache gives way."""
    return max(0, min(size_bytes, held_bytes + free_bytes - threshold_bytes))
