"""Pilots that are killed while they bring files: the next life goes on where the last one ended."""  # FM-6, JS-7

import asyncio
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from mendflow.core.model.ids import ItemId
from mendflow.core.model.jobs import JobSpec
from tests.pilot.conftest import Pilot, Server
from tests.pilot.test_parts import kept
from tests.transfer.web_server import web

Hire = Callable[..., Pilot]


@pytest.mark.full
async def test_a_pilot_that_is_killed_while_it_brings_a_file_goes_on_where_it_was(
    server: Server, hire: Hire, tmp_path: Path
) -> None:
    content = os.urandom(6 << 20)
    cache = tmp_path / "work" / "cache"
    with web(content) as source:
        source.slow_s, source.piece_bytes = 0.02, 1 << 16
        pilot = hire()
        job = await server.submit(
            JobSpec(
                item=ItemId("i"), command="sha256sum < in", inputs={"in": kept(content)}, replicas={"in": (source.url,)}
            )
        )
        brought = 0
        for _ in range(3):
            known = brought
            await server.until(partial(_more_than, cache, known + (1 << 20)), "a megabyte more")
            pilot.kill()
            brought = part_bytes(cache)
            assert not [path for path in cache.iterdir() if "." not in path.name], "nothing half is in the cache"
            pilot.restart()
        source.slow_s = 0.0
        outcome = await server.outcome(job)
        assert outcome.ok and kept(content).sha256 in outcome.log_tail, outcome.fault
        begun = [int(each.get("Range", "bytes=0-").removeprefix("bytes=").rstrip("-")) for each in source.asked]
    assert begun[0] == 0 and begun == sorted(begun) and begun[-1] >= 3 << 20, "each life began where the last one ended"
    assert outcome.measures.fetched_bytes == len(content)
    assert [path.name for path in cache.iterdir() if path.is_file()] == [kept(content).sha256]


def _more_than(cache: Path, least: int) -> bool:
    return part_bytes(cache) >= least


def part_bytes(cache: Path) -> int:
    """How much of a file is there already."""
    try:
        return max((path.stat().st_size for path in cache.iterdir() if path.name.endswith(".part")), default=0)
    except OSError:
        return 0


async def test_a_pilot_that_leaves_does_not_wait_for_a_file_that_is_under_way(
    server: Server, hire: Hire, tmp_path: Path
) -> None:
    content = os.urandom(20 << 20)
    with web(content) as source:
        source.slow_s, source.piece_bytes = 0.05, 1 << 14
        pilot = hire()
        job = JobSpec(item=ItemId("i"), command="true", inputs={"in": kept(content)}, replicas={"in": (source.url,)})
        submitted = await server.submit(job)
        await server.until(lambda: part_bytes(tmp_path / "work" / "cache") > 0, "it to be under way")
        assert await asyncio.to_thread(pilot.end) == 0
        assert source.sent < len(content) / 2
        assert submitted not in server.ledger.outcomes, "it is given back, and has not failed"
