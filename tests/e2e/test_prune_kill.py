"""`mendflow prune` is killed with -9 while it removes cases, several times. Afterwards the next prune finishes what was
begun: nothing is left of what was to go, and all that stays is whole."""

import asyncio
import random
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from mendflow.core.model.ids import CaseId
from mendflow.services.cases.live_case import journal_of
from mendflow.stores.contract import Append, Put, Write
from mendflow.stores.files import FolderFileStore
from mendflow.stores.sqlite.store import SqliteStore
from tests.patience import PATIENCE_S
from tests.services.retention.kit import DAY_MS, digest_of

pytestmark = pytest.mark.law

OLD, NEW, KILLS = 1500, 60, 4


def case_writes(id: str, files: list[str], ended_at: int) -> list[Write]:
    document = {
        "id": id,
        "flow": "f",
        "digest": "",
        "status": "completed",
        "started_at": ended_at,
        "ended_at": ended_at,
    }
    job = {"id": f"{id}/1", "case": id, "state": "completed", "outcome": {"files": [digest_of(each) for each in files]}}
    return [
        Put("case", id, msgspec.json.encode(document), 0),
        Put("job", f"{id}/1", msgspec.json.encode(job), 0),
        Append(journal_of(CaseId(id)), [msgspec.json.encode(job)], 0),
    ]


async def fill(folder: Path) -> None:
    """Old cases with a file of their own, and one that some of the new cases have too."""
    store, files = SqliteStore(folder / "store.db"), FolderFileStore(folder / "files")
    await store.open()
    files.open()
    now = time.time_ns() // 1_000_000
    writes: list[Write] = []
    for number in range(OLD):
        writes += case_writes(f"f-old{number}", [f"own {number}", f"shared {number % 100}"], now - 20 * DAY_MS)
    for number in range(NEW):
        writes += case_writes(f"f-new{number}", [f"new {number}", f"shared {number}"], now)
    await store.write(writes)
    texts = [f"own {n}" for n in range(OLD)] + [f"shared {n}" for n in range(100)] + [f"new {n}" for n in range(NEW)]
    await files.keep_many({digest_of(text): text.encode() for text in texts})
    await store.close()


def pruned(folder: Path) -> int:
    with sqlite3.connect(f"file:{folder / 'store.db'}?mode=ro", uri=True) as connection:
        return int(connection.execute("SELECT count(*) FROM documents WHERE kind = 'pruned'").fetchone()[0])


def start(folder: Path) -> subprocess.Popen[bytes]:
    words = ("prune", "--older-than", "10d", "--yes", "--data-dir", str(folder))
    return subprocess.Popen(
        [sys.executable, "-m", "mendflow", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )


def kill_when(process: subprocess.Popen[bytes], folder: Path, number: int) -> bool:
    """Kill it when so many cases are noted as pruned; whether that was in time."""
    give_up_at = time.monotonic() + PATIENCE_S
    while process.poll() is None and time.monotonic() < give_up_at:
        if pruned(folder) >= number:
            process.kill()
            process.wait()
            return process.returncode == -9
    return False


async def what_is_left(folder: Path) -> tuple[set[str], set[str]]:
    """The names of the cases of which anything is left, and the texts of the files that are whole."""
    store, files = SqliteStore(folder / "store.db"), FolderFileStore(folder / "files")
    await store.open()
    files.open()
    left: set[str] = set()
    for kind in ("case", "job"):
        async for found in store.scan(kind):
            left.add(found.id.partition("/")[0])
    for number in range(OLD):
        if await store.length(journal_of(CaseId(f"f-old{number}"))):
            left.add(f"f-old{number}")
    names = [f"own {n}" for n in range(OLD)] + [f"shared {n}" for n in range(100)] + [f"new {n}" for n in range(NEW)]
    whole = {text for text in names if await files.size(digest_of(text)) is not None}
    await store.close()
    return left, whole


@pytest.mark.full
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", [1])
def test_a_prune_that_is_killed_again_and_again_is_finished_by_the_next(tmp_path: Path, seed: int) -> None:  # DU-6
    asyncio.run(fill(tmp_path))
    chance, killed, aim = random.Random(seed), 0, 0
    for _ in range(KILLS):
        aim += chance.randrange(50, 350)
        killed += kill_when(start(tmp_path), tmp_path, aim)
    assert killed >= 2, "it was killed in the middle"
    last = start(tmp_path)
    told, _ = last.communicate(timeout=PATIENCE_S)
    assert last.returncode == 0, told
    left, whole = asyncio.run(what_is_left(tmp_path))
    assert left == {f"f-new{number}" for number in range(NEW)}
    assert whole == {f"new {n}" for n in range(NEW)} | {f"shared {n}" for n in range(NEW)}
