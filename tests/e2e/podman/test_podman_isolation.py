"""A hostile job in a container, beside another's: it has neither its files, nor the pilot's, nor their variables."""

import hashlib
import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from mendflow.core.model.secrets import SecretValue
from tests.e2e.conftest import World
from tests.servers.podman import IMAGE, Podman

SECRET = "tell-nobody-4711"


@pytest.mark.parametrize("words", [(), ("--sandbox", "containers")], ids=["beside others", "containers alone"])
def test_a_job_in_a_container_reaches_nothing(
    podman: Podman, world: World, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:  # SE-2
    password = f"pg-{secrets.token_hex(8)}"
    monkeypatch.setenv("PGPASSWORD", password)
    world.start_server()
    world.wait_for_server()
    world.start_pilot("one", 2, *words)
    world.until(lambda: [each.capacity.runtime for each in world.client.pilots()] == ["podman"], "a pilot with podman")
    work = world.folder / "pilots" / "one"
    victim: dict[str, object] = {"victim": {"container": IMAGE, "run": "echo private > secret.txt; sleep 3000"}}
    other = start(world, "victim", victim)
    world.until(lambda: list(work.glob("attempts/*/secret.txt")), "the other job to run")
    script = f"""
      out() {{ echo "$1=$(tr -d '\\n' | head -c 200)" >> "$MENDFLOW_OUTPUT"; }}
      cat {work}/attempts/*/secret.txt {next(work.glob("attempts/*/secret.txt"))} 2>/dev/null | out files
      cat {work}/pilot.json {world.folder}/data/server.json {world.folder}/data/store.db 2>/dev/null | out pilot
      cat /proc/[0-9]*/environ 2>/dev/null | grep -c {password[:8]}.{password[9:]} | out password
    """
    hostile = start(world, "hostile", {"hostile": {"container": IMAGE, "run": script}})
    world.until(lambda: world.client.case(hostile).status in ("completed", "failed"), "the end of the hostile job")
    [item] = world.client.items(hostile)
    assert isinstance(item.outputs, dict), world.client.why(f"{hostile}:hostile").sentence
    assert not item.outputs["files"] and not item.outputs["pilot"]
    assert item.outputs["password"] == 0
    if words:
        plain = start(world, "plain", {"plain": {"run": "true", "retries": 0}})
        world.until(lambda: "names none" in reasons(world, plain), "the job without a container to be refused")
        world.client.cancel(plain)
    world.client.cancel(other)
    world.until(lambda: not podman.containers(), "the containers to be gone")
    assert os.path.exists(work)


@pytest.fixture
def passable_world() -> Iterator[World]:
    """A world in a folder that other accounts may pass through."""
    folder = Path(tempfile.mkdtemp(prefix="mendflow-podman-", dir="/tmp"))
    folder.chmod(0o711)
    world = World(folder)
    yield world
    world.stop()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize(
    "words",
    [("--sandbox", "containers"), ("--sandbox", "containers", "--jobs-as", "nobody")],
    ids=["as the pilot", "as nobody"],
)
def test_a_secret_file_is_read_by_its_job_in_its_container_alone(
    podman: Podman, passable_world: World, words: tuple[str, ...]
) -> None:  # SE-2, DU-6
    world = passable_world
    world.start_server()
    world.wait_for_server()
    world.client.set_secret("key", SecretValue(SECRET))
    world.start_pilot("one", 2, *words)
    world.until(lambda: [each.capacity.runtime for each in world.client.pilots()] == ["podman"], "a pilot with podman")
    work = world.folder / "pilots" / "one"
    script = """
      echo digest=$(sha256sum < conf/deep/token | cut -c1-64) >> $MENDFLOW_OUTPUT
      echo mode=$(stat -L -c %a conf/deep/token) >> $MENDFLOW_OUTPUT
      echo running > begun
      while ! test -e go; do sleep 0.1; done
    """
    uses = {"container": IMAGE, "run": script, "secrets": {"conf/deep/token": {"file": "key"}}, "retries": 0}
    case = start(world, "uses", {"uses": uses})
    world.until(lambda: list(work.glob("attempts/*/begun")), "the job to run")
    assert secret_files(work), "while it runs, the file is there"
    search = f"""
      find / -xdev -type f ! -path '/proc/*' ! -path '/sys/*' > seen 2>/dev/null || :
      find /dev/shm /run {work} -type f >> seen 2>/dev/null || :
      test -s seen
      while read -r path; do
        grep -q {SECRET[:8]}.{SECRET[9:]} "$path" 2>/dev/null && echo "$path" || :
      done < seen > found
      cat {next(work.glob("attempts/*/begun")).parent}/conf/deep/token >> found 2>/dev/null || :
      echo found=$(wc -l < found) >> $MENDFLOW_OUTPUT
    """
    hostile = start(world, "hostile", {"hostile": {"container": IMAGE, "run": search, "retries": 0}})
    world.until(lambda: world.client.case(hostile).status in ("completed", "failed"), "the end of the hostile job")
    [item] = world.client.items(hostile)
    assert item.outputs == {"found": 0}, world.client.why(f"{hostile}:hostile").sentence
    (next(work.glob("attempts/*/begun")).parent / "go").touch()
    world.until(lambda: world.client.case(case).status in ("completed", "failed"), "the end of the job")
    [item] = world.client.items(case)
    digest = hashlib.sha256(SECRET.encode()).hexdigest()
    assert item.outputs == {"digest": digest, "mode": 600}, world.client.why(f"{case}:uses").sentence
    assert secret_files(work) == []


def secret_files(work: Path) -> list[str]:
    """The files of the pilot, on the disk and in memory, that have the secret."""
    places = [work, *(path for place in ("/dev/shm", "/run") for path in Path(place).glob("mendflow-*"))]
    found = []
    for path in (path for place in places for path in place.rglob("*")):
        with suppress(FileNotFoundError):  # of another test, gone meanwhile
            if path.is_file() and SECRET.encode() in path.read_bytes():
                found.append(str(path))
    return found


def start(world: World, name: str, jobs: dict[str, object]) -> str:
    (world.folder / f"{name}.yaml").write_text(json.dumps({"name": name, "jobs": jobs}))
    command = [sys.executable, "-m", "mendflow", "start", f"{name}.yaml", "--server", world.url, "--json"]
    done = subprocess.run(command, cwd=world.folder, capture_output=True, check=True)
    return str(json.loads(done.stdout)["id"])


def reasons(world: World, case: str) -> str:
    told = world.client.why(f"{case}:plain")
    return " ".join([told.sentence, *told.facts])


def test_the_folder_of_a_container_is_its_own(podman: Podman, tmp_path: Path) -> None:  # SE-2
    flow = {
        "jobs": {
            "a": {
                "container": IMAGE,
                "run": 'ls "$(dirname "$PWD")" | wc -l > n; echo n=$(cat n) >> "$MENDFLOW_OUTPUT"',
            }
        }
    }
    (tmp_path / "flow.yaml").write_text(json.dumps(flow | {"outputs": {"n": "${{ jobs.a.outputs.n }}"}}))
    command = [sys.executable, "-m", "mendflow", "run", "flow.yaml", "--json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr + done.stdout
    assert json.loads(done.stdout)["outputs"]["n"] < 8, "its folder, and the files beside it"
