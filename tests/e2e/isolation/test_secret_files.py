"""Secrets as files of jobs under other accounts and in sandboxes: the job reads its own, another's job reads none, and
nothing is left of them."""

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from mendflow.core.model.secrets import SecretValue
from tests.e2e.isolation.conftest import INTRUDER, NOBODY, OWNER, Installation
from tests.e2e.isolation.test_hostile_jobs import own_folder_of

SECRET = "tell-nobody-4711"
DIGEST = hashlib.sha256(SECRET.encode()).hexdigest()
PLACES = ("/dev/shm", "/run/user", "/run")
SCRIPT = """
echo digest=$(sha256sum < conf/deep/token | cut -c1-64) >> $MENDFLOW_OUTPUT
echo mode=$(stat -L -c %a conf/deep/token) >> $MENDFLOW_OUTPUT
echo running > begun
while ! test -e go; do sleep 0.1; done
"""
FUNCTION = """
import hashlib, os

def use():
    with open("conf/deep/token", "rb") as file:
        content = file.read()
    return {"digest": hashlib.sha256(content).hexdigest(), "mode": oct(os.stat("conf/deep/token").st_mode)[-3:]}
"""
SEARCH = """
import glob, json, os

def search(mark, work):
    found, seen = [], 0
    mark = mark[::-1].encode()
    for pattern in ("/dev/shm/**", "/run/mendflow*/**", "/run/user/**", f"{work}/**", "/proc/[0-9]*/root/dev/shm/**"):
        for path in glob.glob(pattern, recursive=True, include_hidden=True):
            try:
                with open(path, "rb") as file:
                    seen += 1
                    if mark in file.read(1 << 20):
                        found.append(path)
            except OSError:
                pass
    return {"found": found, "seen": seen}
"""
WAYS = pytest.mark.parametrize(
    ("way", "before"),
    [
        (("--jobs-as", "owner", "--accounts", f"{OWNER},{INTRUDER}"), None),
        (("--sandbox", "bubblewrap"), None),
        (("--sandbox", "bubblewrap"), NOBODY),
    ],
    ids=["accounts", "sandbox of root", "sandbox of nobody"],
)


def with_pilot(installation: Installation, way: tuple[str, ...], before: list[str] | None) -> None:
    installation.serve()
    own_folder_of(installation, before)
    installation.pilot(*way, before=before)
    installation.client("root-of-all").set_secret("key", SecretValue(SECRET))


def left(installation: Installation) -> list[str]:
    """The files of the pilot, on the disk and in memory, that have the secret."""
    places = [installation.work, *(path for place in PLACES for path in Path(place).glob("mendflow-*"))]
    return [str(path) for place in places for path in files_below(place) if SECRET.encode() in content(path)]


def files_below(place: Path) -> Iterator[Path]:
    """Folders that go away meanwhile are passed over: others use the same places."""
    for folder, _, names in os.walk(place):
        yield from (Path(folder, name) for name in names)


def content(path: Path) -> bytes:
    """Nothing of what is no file, or is there no more: others use the same places."""
    try:
        return path.read_bytes() if path.is_file() else b""
    except FileNotFoundError:
        return b""


@WAYS
def test_a_job_reads_its_secret_file_and_nobody_else_does(
    installation: Installation, way: tuple[str, ...], before: list[str] | None
) -> None:  # SE-2, DU-6
    with_pilot(installation, way, before)
    job = {"run": SCRIPT, "secrets": {"conf/deep/token": {"file": "key"}}, "retries": 0}
    case = installation.begin(OWNER, "uses", json.dumps({"name": "uses", "jobs": {"a": job}}))
    installation.until(lambda: list(installation.work.glob("attempts/*/begun")), "the job to run")
    assert left(installation), "while it runs, the file is there"
    call = {"python": "search.py:search", "with": {"mark": SECRET[::-1], "work": str(installation.work)}}
    hostile = {"name": "hostile", "defaults": {"retries": 0}, "jobs": {"b": call}}
    loot = installation.end_of(INTRUDER, installation.begin(INTRUDER, "hostile", json.dumps(hostile), search=SEARCH))
    assert isinstance(loot["b"], dict) and loot["b"]["found"] == []
    [folder] = {path.parent for path in installation.work.glob("attempts/*/begun")}
    (folder / "go").touch()
    told = installation.end_of(OWNER, case)
    assert told["a"] == {"mode": 600, "digest": DIGEST}
    assert left(installation) == []


@WAYS
def test_a_function_reads_its_secret_file(
    installation: Installation, way: tuple[str, ...], before: list[str] | None
) -> None:  # SE-2, DU-6
    with_pilot(installation, way, before)
    call = {"python": "work.py:use", "secrets": {"conf/deep/token": {"file": "key"}}, "retries": 0}
    case = installation.begin(OWNER, "calls", json.dumps({"name": "calls", "jobs": {"a": call}}), work=FUNCTION)
    assert installation.end_of(OWNER, case)["a"] == {"mode": "600", "digest": DIGEST}
    assert left(installation) == []
