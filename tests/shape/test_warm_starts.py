"""A process that is forked from one that has loaded mendflow is what a started one is: tests/servers/warm_starts.py."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S
from tests.servers.warm_starts import WARM, usual_starts, warm_starts

MENDFLOW = [sys.executable, "-m", "mendflow"]


@pytest.fixture(autouse=True)
def forking() -> Iterator[None]:
    with warm_starts():
        yield


@pytest.fixture
def forks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The processes that were forked."""
    made: list[int] = []
    start = WARM.start

    def counted(message: bytes, descriptors: list[int]) -> int:
        made.append(start(message, descriptors))
        return made[-1]

    monkeypatch.setattr(WARM, "start", counted)
    return made


def told(*words: str, folder: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*MENDFLOW, *words],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )


@pytest.mark.parametrize(
    "words", [("--version",), ("cases",), ("no-such-command",), ("check", "no-such-file.yaml"), ("cases", "--help")]
)
def test_it_says_and_ends_with_what_a_started_one_does(
    words: tuple[str, ...], tmp_path: Path, forks: list[int]
) -> None:
    forked = told(*words, folder=tmp_path)
    assert len(forks) == 1 and forks[0] > 0
    with usual_starts():
        started = told(*words, folder=tmp_path)
    assert len(forks) == 1
    assert (forked.returncode, forked.stdout, forked.stderr) == (started.returncode, started.stdout, started.stderr)


def test_it_is_our_child_with_its_own_words_folder_and_end(tmp_path: Path, forks: list[int]) -> None:
    words = [*MENDFLOW, "serve", "--port", "0", "--data-dir", "data"]
    process = subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert process.stdout is not None and process.stdout.readline().startswith(b"mendflow serves")
    assert [process.pid] == forks
    place = Path(f"/proc/{process.pid}")
    assert place.joinpath("cmdline").read_bytes().rstrip(b"\0").split(b"\0") == [word.encode() for word in words]
    assert place.joinpath("cwd").resolve() == tmp_path
    assert int(place.joinpath("stat").read_text().rpartition(")")[2].split()[1]) == os.getpid()
    process.kill()
    assert process.wait(PATIENCE_S) == -signal.SIGKILL
    process.stdout.close()
    assert not place.exists()


@pytest.mark.parametrize("name", ["MENDFLOW_TOKEN", "PYTHONPATH"])
def test_one_with_a_secret_or_a_setting_of_python_is_started(name: str, tmp_path: Path, forks: list[int]) -> None:
    assert told("--version", folder=tmp_path, **{name: "x"}).returncode == 0
    assert forks == []


@pytest.mark.full
def test_what_it_starts_itself_is_forked_too_where_that_is_wanted(tmp_path: Path) -> None:
    """A slot that was started would have nothing of a server in its memory."""
    look = "grep -q mendflow.pilot.slot.process /proc/$PPID/cmdline && grep -q uvloop /proc/$PPID/maps"
    (tmp_path / "f.yaml").write_text(f"jobs: {{a: {{run: '{look}'}}}}\n")
    with warm_starts(below=True):
        done = told("run", "f.yaml", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    with usual_starts():
        assert told("run", "f.yaml", folder=tmp_path).returncode != 0
