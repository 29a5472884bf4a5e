"""`memory: auto` and `time: auto`, as people write them."""  # LE-2

import pytest

from mendflow.core.engine.activities.job import part_of
from mendflow.core.engine.activities.job_parts import as_resources
from mendflow.core.model.flow import JobActivity, Parallel
from mendflow.core.model.jobs import Resources
from tests.formats.conftest import Complaints, Reader


def needs(read: Reader, keys: str) -> Resources:
    body = read(f"jobs:\n  a:\n    run: x\n{keys}").body
    assert isinstance(body, Parallel) and isinstance(body.branches[0], JobActivity)
    return as_resources(part_of(body.branches[0], "resources"), "a")


@pytest.mark.parametrize(
    ("keys", "found"),
    [
        ("    memory: auto\n", Resources(memory_auto=True)),
        ("    memory: auto up to 16 GB\n", Resources(memory_auto=True, memory_max_bytes=16 * 10**9)),
        ("    memory: auto up to 2 GiB\n    cpus: 2\n", Resources(memory_auto=True, memory_max_bytes=2**31, cpus=2.0)),
        ("    time: auto\n", Resources(wall_auto=True)),
        ("    time: auto up to 4 h\n", Resources(wall_auto=True, wall_max_ms=4 * 3_600_000)),
        ("    memory: 2 GB\n", Resources(memory_bytes=2 * 10**9)),
    ],
)
def test_memory_and_time_may_be_learned_within_a_bound(read: Reader, keys: str, found: Resources) -> None:  # LE-2
    assert needs(read, keys) == found


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ("memory: auto up to much", "`much` is not a size that can be a bound; write `auto up to 16 GB`"),
        ("memory: auto up to 16", "`16` is not a size that can be a bound"),
        ("memory: auto up to 0 B", "`0 B` is not a size that can be a bound"),
        ("time: auto up to 16 GB", "`16 GB` is not a duration that can be a bound; write `auto up to 4 h`"),
        ("memory: automatic", "a size (such as 512 MiB, 2 GB) is expected here"),
        ("disk: auto", "a size (such as 512 MiB, 2 GB) is expected here"),
    ],
)
def test_a_bound_that_is_none_is_told_where_it_stands(complaints: Complaints, keys: str, said: str) -> None:  # LE-2
    [problem] = complaints(f"jobs:\n  a:\n    run: x\n    {keys}\n")
    assert said in problem
