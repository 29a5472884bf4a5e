"""kill -9 at any moment leaves nothing wrong: with real processes, killed while they bring and publish."""  # FM-6

import hashlib
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from mendflow.core.model.data import StorageElement
from mendflow.core.model.values import FileRef
from mendflow.transfer.element import StorageClient
from mendflow.transfer.targets import ASIDE
from tests.servers import s3
from tests.transfer.web_server import web

ROUNDS_MAX = 200
pytestmark = pytest.mark.law
ACTS = """
import sys
import msgspec
from mendflow.core.model.data import StorageElement
from mendflow.core.model.values import FileRef
from mendflow.transfer.element import StorageClient

act, storage, ref, url, path, turn = sys.argv[1:]
element = StorageClient(msgspec.json.decode(storage, type=StorageElement))
ref = msgspec.json.decode(ref, type=FileRef)
print("ready", flush=True)
if act == "fetch":
    element.fetch(url, path, ref)
else:
    element.publish(path, url, ref, mark="job", turn=int(turn))
"""


def start(
    act: str, storage: StorageElement, ref: FileRef, url: str, path: Path, turn: int
) -> "subprocess.Popen[bytes]":
    given = [act, _json(storage), _json(ref), url, str(path), str(turn)]
    process = subprocess.Popen(
        [sys.executable, "-c", ACTS, *given], stdout=subprocess.PIPE, env={**os.environ, **s3.ENVIRONMENT}
    )
    assert process.stdout is not None and process.stdout.readline() == b"ready\n"
    return process


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def killed(process: "subprocess.Popen[bytes]", after_s: float) -> bool:
    """Whether it was killed; False if it had ended by itself before that."""
    try:
        process.wait(after_s)
    except subprocess.TimeoutExpired:
        process.kill()
    finally:
        process.wait()
        assert process.stdout is not None
        process.stdout.close()
    assert process.returncode in (0, -9)
    return process.returncode == -9


@pytest.mark.full
def test_a_download_comes_whole_though_no_process_lives_long_enough_for_it(tmp_path: Path) -> None:
    """All of it takes a second, and each is killed after a third of one at most: each goes on where the last ended."""
    content = os.urandom(6 << 20)
    ref = FileRef(sha256=hashlib.sha256(content).hexdigest(), bytes=len(content), name="file")
    target, chance, kills = tmp_path / "file", random.Random(5), 0
    with web(content) as server:
        server.slow_s, server.piece_bytes = 0.01, 1 << 16
        storage = StorageElement(name="web", url=server.url, chunk_bytes=1 << 16)
        for turn in range(ROUNDS_MAX):
            kills += killed(start("fetch", storage, ref, server.url, target, turn), chance.uniform(0, 0.3))
            if target.exists():
                break  # it is seen only when it is whole; the kill may have come right after that
        assert target.read_bytes() == content and kills >= 3
        assert os.listdir(tmp_path) == ["file"]


@pytest.mark.full
@pytest.mark.parametrize("kind", ["disk", "s3"])
def test_a_publication_that_is_killed_again_and_again_is_whole_or_not_there(tmp_path: Path, kind: str) -> None:
    content = os.urandom(24 << 20)
    ref = FileRef(sha256=hashlib.sha256(content).hexdigest(), bytes=len(content), name="made")
    source, top = tmp_path / "made", tmp_path / "top"
    source.write_bytes(content)
    top.mkdir()
    storage = s3.server().element() if kind == "s3" else StorageElement(name="disk", url=top.as_uri())
    element, url = StorageClient(storage, s3.ENVIRONMENT), f"{storage.url}/deep/a"
    chance, kills, longest_s = random.Random(7), 0, 1.5 if kind == "s3" else 0.02
    for turn in range(1, ROUNDS_MAX):
        process = start("publish", storage, ref, url, source, turn)
        began = time.monotonic()
        was_killed = killed(process, chance.uniform(0, longest_s))
        longest_s = max(longest_s * (1.5 if kills > 3 else 1.1), time.monotonic() - began)
        found = element.stat(url)
        assert found is None or found.bytes == len(content)
        kills += was_killed
        if not was_killed and kills >= 3:
            break
        longest_s = longest_s if was_killed else longest_s / 2  # too quick to be killed: sooner next time
    assert kills >= 3 and not was_killed
    assert element.fetch(url, str(tmp_path / "back"), ref) == (ref.sha256, ref.bytes)
    assert [each.path for each in element.list()] == ["deep/a"]
    if kind == "disk":
        assert not [name for name in os.listdir(top / "deep") if name.startswith(ASIDE)], "no litter is left"
