"""How large a cache may be, alone and on a host."""

from hypothesis import given
from hypothesis import strategies as st

from mendflow.core.caching.sizes import cache_bytes, limit_to_disk, share_of_host

GB = 1 << 30
spaces = st.integers(0, 20 * GB)


def test_a_pilot_alone_has_its_space_less_the_threshold() -> None:  # PJ-5
    assert cache_bytes(10 * GB, 2 * GB) == 8 * GB
    assert cache_bytes(1 * GB, 2 * GB) == 0


def test_pilots_that_share_have_the_space_of_all_and_leave_the_threshold_once() -> None:  # PJ-5
    assert cache_bytes(10 * GB, 2 * GB, pilots=4) == 38 * GB


def test_what_another_has_and_this_one_has_no_link_to_is_not_this_ones_to_fill() -> None:  # PJ-5
    assert share_of_host(10 * GB, 2 * GB, pilots=2, elsewhere_bytes=0) == 18 * GB
    assert share_of_host(10 * GB, 2 * GB, pilots=2, elsewhere_bytes=6 * GB) == 12 * GB
    assert share_of_host(10 * GB, 2 * GB, pilots=2, elsewhere_bytes=18 * GB) == 8 * GB, "never less than alone"


@given(space=spaces, threshold=spaces, files=st.lists(st.integers(0, 60 * GB), min_size=1, max_size=5))
def test_caches_that_each_keep_to_their_part_keep_to_the_hosts_size_together(  # PJ-5
    space: int, threshold: int, files: list[int]
) -> None:
    """Each pilot has files of its own; each in its turn gives way to its part, until none has to."""
    pilots = len(files)
    for _ in range(pilots + 1):
        for each in range(pilots):
            elsewhere = sum(files) - files[each]
            part = share_of_host(space, threshold, pilots=pilots, elsewhere_bytes=elsewhere)
            files[each] = min(files[each], part)
    assert sum(files) <= cache_bytes(space, threshold, pilots=pilots)


@given(size=spaces, held=spaces, free=spaces, threshold=spaces)
def test_growing_to_its_size_leaves_the_threshold_of_the_disk_free(  # PJ-5
    size: int, held: int, free: int, threshold: int
) -> None:
    bound = limit_to_disk(size, held_bytes=held, free_bytes=free, threshold_bytes=threshold)
    assert 0 <= bound <= size
    left = free + held - bound
    assert left >= threshold or bound == 0 or bound == size < held + free - threshold
