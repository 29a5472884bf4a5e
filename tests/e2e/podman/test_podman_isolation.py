"""A hostile job in a container, beside another's: it has neither its files, nor the pilot's, nor their variables."""

import json
import os
import secrets
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.conftest import World
from tests.servers.podman import IMAGE, Podman


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
