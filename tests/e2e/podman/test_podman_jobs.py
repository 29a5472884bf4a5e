"""Jobs in containers of a real podman are as jobs outside: results, limits, signals, measures, faults."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import World
from tests.servers.podman import IMAGE, Podman

RUN_S = 240


def run(folder: Path, flow: str, *words: str, code: int = 0) -> Any:
    (folder / "flow.yaml").write_text(flow)
    command = [sys.executable, "-m", "mendflow", "run", "flow.yaml", "--json", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=RUN_S)
    assert done.returncode == code, done.stderr + done.stdout
    return json.loads(done.stdout)


def jobs(folder: Path) -> Any:
    command = [sys.executable, "-m", "mendflow", "jobs", "--case", "last", "--json"]
    return json.loads(subprocess.run(command, cwd=folder, capture_output=True, check=True, timeout=RUN_S).stdout)


def test_a_job_in_a_container_has_its_folder_inputs_environment_user_and_measures(  # DU-5
    podman: Podman, tmp_path: Path
) -> None:
    (tmp_path / "in.txt").write_text("input\n")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "table").write_text("mounted\n")
    (tmp_path / "data").chmod(0o755)
    flow = f"""
container: {IMAGE}
jobs:
  first:
    env: {{WORD: "two words"}}
    inputs: in.txt
    files: {{out: out.txt}}
    container: {{image: {IMAGE}, mounts: "{tmp_path}/data:/in:ro"}}
    run: |
      test -x /bin/busybox && ! test -e /usr/bin/env
      cat in.txt /in/table > out.txt
      echo "$WORD" >> out.txt
      touch /in/new 2>/dev/null && exit 9
      i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done
      echo "user=$(id -u)" >> "$MENDFLOW_OUTPUT"
  outside: {{run: test -e /usr/bin/env, container: none}}
  second:
    inputs: {{in.txt: "${{{{ jobs.first.files.out }}}}"}}
    run: wc -l < in.txt | tee -a lines; echo "lines=$(cat lines)" >> "$MENDFLOW_OUTPUT"
outputs: {{lines: "${{{{ jobs.second.outputs.lines }}}}", user: "${{{{ jobs.first.outputs.user }}}}"}}
"""
    told = run(tmp_path, flow)
    assert told["outputs"] == {"lines": 3, "user": os.getuid()}
    by_name = {job["name"]: job for job in jobs(tmp_path)}
    outcome, measures = by_name["first"]["outcome"], by_name["first"]["outcome"]["measures"]
    assert outcome["image"].startswith("sha256:") and "image" not in by_name["outside"]["outcome"]
    assert measures["cpu_ms"] > 50 and 0 < measures["peak_bytes"] < 30_000_000, "podman itself is not counted"


def test_an_exit_code_and_what_was_printed_are_those_of_the_command(podman: Podman, tmp_path: Path) -> None:  # DU-5
    flow = f"jobs: {{a: {{run: 'echo because; exit 7', container: {IMAGE}, retries: 0}}}}"
    run(tmp_path, flow, code=1)
    [job] = jobs(tmp_path)
    assert job["outcome"]["fault"]["exit_code"] == 7 and "because" in job["outcome"]["log_tail"]


def test_a_job_over_its_memory_is_killed_and_mended_by_the_default_rules(
    podman: Podman, tmp_path: Path
) -> None:  # DU-5
    eat = """awk 'BEGIN { s = sprintf("%60000000s", ""); system("sleep 1"); print length(s) }'"""
    flow = f"jobs:\n  eat:\n    container: {IMAGE}\n    memory: 40 MB\n    run: |\n      {eat}\n"
    run(tmp_path, flow)
    history = [attempt for job in jobs(tmp_path) for attempt in job["history"]]
    faults = [attempt["fault"]["name"] for attempt in history if attempt.get("fault")]
    [last] = [attempt for attempt in history if attempt["end"] == "completed"]
    assert set(faults) == {"memoryLimit"} and last["measures"]["peak_bytes"] > 55_000_000


def test_fifty_jobs_with_an_image_that_does_not_exist_ask_for_it_once(podman: Podman, tmp_path: Path) -> None:  # DU-5
    flow = "jobs: {a: {for-each: {from: 1, to: 50}, run: 'true', container: local/nothing:1}}"
    run(tmp_path, flow, "-j", "4", code=1)
    faults = [attempt["fault"] for job in jobs(tmp_path) for attempt in job["history"]]
    assert {fault["name"] for fault in faults} == {"imageMissing"} and len(faults) == 50
    assert "local/nothing:1" in faults[0]["message"]
    assert len(podman.given("pull")) == 1


def test_an_image_of_the_machine_that_is_not_there_is_told_at_once_and_not_tried_again(  # DU-5
    podman: Podman, tmp_path: Path
) -> None:
    run(tmp_path, "jobs: {a: {run: 'true', container: localhost/nothing:1}}", code=1)
    [job] = jobs(tmp_path)
    fault = job["outcome"]["fault"]
    assert [attempt["fault"]["name"] for attempt in job["history"]] == ["imageMissing"], "one attempt"
    assert "the image localhost/nothing:1 is not on " in fault["message"]
    assert "podman build -t localhost/nothing:1" in fault["message"] and len(podman.given("pull")) == 1


def test_an_image_that_was_built_or_loaded_here_is_found_by_its_name(podman: Podman, tmp_path: Path) -> None:  # DU-5
    archive = tmp_path / "tool.tar"
    (tmp_path / "image").mkdir()
    (tmp_path / "image/Containerfile").write_text(f"FROM {IMAGE}\nENV TOOL=mine\nLABEL of=us\n")
    podman.run("build", "--quiet", "--tag", "localhost/tool:1", str(tmp_path / "image"))
    podman.run("save", "--output", str(archive), "localhost/tool:1")
    podman.run("rmi", "localhost/tool:1")
    podman.run("load", "--input", str(archive))
    run(tmp_path, "jobs: {a: {run: 'echo $TOOL', container: localhost/tool:1}}")
    [job] = jobs(tmp_path)
    assert job["outcome"]["log_tail"] == "mine\n" and not podman.given("pull")


def test_a_machine_that_cannot_start_containers_is_told_of_and_its_job_is_not_tried_there_again(  # DU-5
    podman: Podman, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MENDFLOW_CONTAINER_COMMAND", f"{podman.command} --runtime /nowhere/runc")
    flow = f"jobs: {{a: {{for-each: {{from: 1, to: 3}}, run: 'true', container: {IMAGE}, retries: 2}}}}"
    run(tmp_path, flow, "-j", "1", code=1)
    for job in jobs(tmp_path):
        [attempt] = job["history"]
        assert (attempt["fault"]["name"], attempt["fault"]["category"]) == ("containerNotStarted", "resource")
        assert "cannot start containers: podman said: " in attempt["fault"]["message"]
        assert "/nowhere/runc" in attempt["fault"]["message"] and "Why, and what helps: " in attempt["fault"]["message"]


def test_an_image_without_what_the_command_needs_is_told_of(podman: Podman, tmp_path: Path) -> None:  # DU-5
    flow = f"""
jobs:
  a: {{run: print(1), shell: python, container: {IMAGE}}}
  b: {{run: "true", container: {{image: {IMAGE}, options: --privileged}}}}
"""
    run(tmp_path, flow, code=1)
    messages = {job["name"]: job["outcome"]["fault"]["message"] for job in jobs(tmp_path)}
    assert "127" in messages["a"] and "does not allow" in messages["b"]


def test_a_secret_is_seen_by_its_job_and_not_by_those_who_list_processes_or_inspect_containers(  # DU-5
    podman: Podman, tmp_path: Path
) -> None:
    secret = "it's tell-nobody-42"
    words = [sys.executable, "-m", "mendflow"]
    subprocess.run([*words, "secrets", "set", "key"], cwd=tmp_path, input=secret.encode(), check=True, timeout=RUN_S)
    (tmp_path / "out").mkdir()
    (tmp_path / "flow.yaml").write_text(f"""
jobs:
  a:
    container: {{image: {IMAGE}, mounts: "{tmp_path}/out:/out"}}
    secrets: {{GOOGLE_API_KEY: key, API_TOKEN: key}}
    env: {{mark: of-my-own}}
    run: |
      echo "$PWD $mark ${{#GOOGLE_API_KEY}} $API_TOKEN" > /out/new
      mv /out/new /out/ready
      while ! test -e /out/over; do sleep 0.1; done
""")
    case = subprocess.Popen([*words, "run", "flow.yaml"], cwd=tmp_path, stdout=subprocess.PIPE)
    try:
        ready = tmp_path / "out" / "ready"
        while not ready.exists() and case.poll() is None:
            time.sleep(0.1)
        folder, mark, length, seen = ready.read_text().rstrip().split(" ", 3)
        [name] = podman.containers()
        inspected = podman.run("inspect", name)
        lines = [_bytes(path) for path in Path("/proc").glob("[0-9]*/cmdline")]
        files = [path for path in Path(folder).parent.rglob("*") if b"tell-nobody-42" in _bytes(path)]
    finally:
        (tmp_path / "out" / "over").touch()
        case.communicate(timeout=RUN_S)
    assert case.returncode == 0
    assert (mark, int(length), seen) == ("of-my-own", len(secret), secret)
    assert "MENDFLOW_PILOT" in inspected and "tell-nobody-42" not in inspected
    assert any(name.encode() in line for line in lines) and not any(b"tell-nobody-42" in line for line in lines)
    assert files == []
    assert "tell-nobody-42" not in podman.calls.read_text()


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_gpus_that_a_job_was_given_are_devices_of_its_container(  # DU-5
    podman: Podman, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    devices = [{"name": str(number), "containerEdits": {"env": [f"DEVICE_{number}=there"]}} for number in range(4)]
    spec = Path("/var/run/cdi/mendflow-test.json")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,3")
    spec.parent.mkdir(exist_ok=True)
    spec.write_text(
        json.dumps({"cdiVersion": "0.5.0", "kind": "nvidia.com/gpu", "devices": devices, "containerEdits": {}})
    )
    try:
        flow = f"jobs: {{a: {{gpus: 2, run: 'env > all; cat all', container: {IMAGE}}}}}"
        run(tmp_path, flow)
    finally:
        spec.unlink()
    [job] = jobs(tmp_path)
    lines = job["outcome"]["log_tail"].splitlines()
    assert {"DEVICE_2=there", "DEVICE_3=there", "CUDA_VISIBLE_DEVICES=0,1"} <= {*lines}
    assert "DEVICE_0=there" not in lines


def test_cancel_and_suspend_reach_the_processes_inside(podman: Podman, world: World) -> None:  # DU-5
    count = world.folder / "count"
    world.folder.chmod(0o755)
    (world.folder / "flow.yaml").write_text(f"""
jobs:
  a:
    container: {{image: {IMAGE}, mounts: "{world.folder}:/out"}}
    run: |
      trap 'echo told > /out/told; exit 3' TERM
      i=0; while true; do i=$((i+1)); echo $i > /out/count; sleep 0.1 || :; done
""")
    world.start_server()
    world.wait_for_server()
    world.start_pilot("one")
    world.until(lambda: [each.capacity.runtime for each in world.client.pilots()] == ["podman"], "a pilot with podman")
    command = [sys.executable, "-m", "mendflow", "start", "flow.yaml", "--server", world.url, "--json"]
    case = json.loads(subprocess.run(command, cwd=world.folder, capture_output=True, check=True).stdout)["id"]
    world.until(lambda: count.exists() and int(count.read_text() or 0) > 3, "the job to count")
    world.client.suspend(case)
    world.until(lambda: _stands_still(count), "the job to stand still", every=1.0)
    world.client.resume(case)
    before = int(count.read_text())
    world.until(lambda: int(count.read_text() or 0) > before + 3, "the job to go on")
    world.client.cancel(case)
    world.until(lambda: world.client.case(case).status == "cancelled", "the end")
    world.until(lambda: not podman.containers(), "the container to be gone")
    assert (world.folder / "told").read_text() == "told\n"


def _stands_still(count: Path) -> bool:
    before = count.read_text()
    time.sleep(1.0)
    return count.read_text() == before
