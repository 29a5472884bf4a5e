"""Many threads and several pilots at a time: as staging, serving and tending use a cache."""

import random
import threading
from pathlib import Path

import pytest

from mendflow.core.model.data import Neighbour
from mendflow.core.model.ids import PilotId
from mendflow.pilot.cache.shared import CacheOptions, SharedCache
from tests.patience import PATIENCE_S
from tests.pilot.cache.files import bringing, digest_of, folder_bytes

CONTENTS = [bytes([number]) * (500 * number) for number in range(1, 13)]
TURNS = 80


def work(seed: int, cache: SharedCache, folder: Path, wrong: list[str]) -> None:
    """Jobs, one after the other; every third has made a file, and the pilot looks around now and then."""
    dice = random.Random(seed)
    try:
        for turn in range(TURNS):
            content = dice.choice(CONTENTS)
            digest, target = digest_of(content), folder / f"{seed}.{turn}"
            if turn % 3 == 0:
                target.write_bytes(content)
                cache.disk.adopt(str(target), digest)
                target.unlink()
            cache.disk.pin(digest)
            try:
                cache.disk.take_in(digest, bringing(content), size=len(content) if turn % 2 else 0)
                cache.disk.give(digest, str(target), link=dice.random() < 0.3)
                if target.read_bytes() != content:
                    wrong.append(f"{seed}.{turn} was given another file")
            finally:
                cache.disk.release([digest])
            if turn % 10 == seed % 10:
                cache.rebalance()
    except BaseException as error:
        wrong.append(f"{seed}: {error!r}")
        raise


@pytest.mark.full
def test_threads_of_pilots_that_share_get_right_files_and_leave_a_cache_of_its_size(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:  # PJ-5, PJ-6
    names, caches = ("one", "two"), []
    options = CacheOptions(space_bytes=12_000, threshold_bytes=2_000, share="site", address="127.0.0.1")
    for name in (*names, "three"):
        (tmp_path / name).mkdir()
        host = "h2" if name == "three" else "h1"
        caches.append(SharedCache(tmp_path / name, options, host=host, first_version=1))
        caches[-1].serve("http://127.0.0.1:1")
    known = [(cache, cache.news(0)) for cache in caches]
    for number, cache in enumerate(caches):
        cache.set_neighbours(
            [
                Neighbour(PilotId(f"p{other}"), "h2" if other == 2 else "h1", news.folder, news.address, news.key)
                for other, (_, news) in enumerate(known)
                if other != number and news is not None
            ],
            mark=1,
        )
    (jobs := tmp_path / "jobs").mkdir()
    wrong: list[str] = []
    threads = [threading.Thread(target=work, args=(seed, caches[seed % 3], jobs, wrong)) for seed in range(9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert not wrong and not any(thread.is_alive() for thread in threads)
    assert "changed" not in caplog.text, "nobody writes into a file, and none is taken for one that somebody wrote into"
    for cache in [*caches, *caches]:
        cache.rebalance()
    for cache in caches:
        cache.close()
    assert folder_bytes(tmp_path / "one", tmp_path / "two") <= 22_000
    assert folder_bytes(tmp_path / "three") <= 10_000
