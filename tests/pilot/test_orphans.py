"""A server on this machine is killed and its pilot is not: the next server gets the pilot, with the jobs it runs."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from mendflow.pilot.agent.orphan import OrphanPilot
from mendflow.pilot.files.locks import hold, holder
from tests.patience import PATIENCE_S
from tests.pilot.command_line import CommandLine
from tests.pilot.conftest import Pilot, Server
from tests.pilot.test_limits import dead, pids_in
from tests.pilot.test_survival import waiting_command

Hire = Callable[..., Pilot]

FLOW = """\
name: wait
jobs:
  hold:
    run: |
      echo $$ >> FOLDER/begun
      while ! test -e FOLDER/go; do sleep 0.05; done
      echo "took=$MENDFLOW_ATTEMPT" > $MENDFLOW_OUTPUT
  end: {needs: hold, run: echo ended}
"""


@pytest.mark.full
async def test_a_case_whose_run_was_killed_is_gone_on_with_at_once_and_its_job_is_credited(
    server: Server, command_line: CommandLine, tmp_path: Path
) -> None:  # FM-5
    (tmp_path / "wait.yaml").write_text(FLOW.replace("FOLDER", str(tmp_path)))
    running = command_line.start("run", "wait.yaml")
    (pid,) = await pids_in(server, tmp_path / "begun")
    orphan = holder(tmp_path / ".mendflow" / "work" / "agent.lock")
    running.kill()
    running.wait()
    again = command_line.start("resume")
    await server.until((tmp_path / ".mendflow" / "server.json").exists, "the next server")
    log = tmp_path / ".mendflow" / "work" / "pilot.log"
    await server.until(lambda: "the server is now at" in log.read_text(), "the pilot to come over")
    assert holder(tmp_path / ".mendflow" / "work" / "agent.lock") == orphan and not dead(pid)
    (tmp_path / "go").touch()
    out, _ = again.communicate(timeout=PATIENCE_S)
    assert again.returncode == 0 and "completed in" in out, out
    assert len((tmp_path / "begun").read_text().split()) == 1, "the job was started once"
    assert holder(tmp_path / ".mendflow" / "work" / "agent.lock") is None, "the pilot ended with the command"
    (case,) = command_line.json("cases")
    assert case["status"] == "completed"


@pytest.mark.full
async def test_a_pilot_that_a_server_took_with_it_outlives_it_and_serves_the_next(
    server: Server, command_line: CommandLine, tmp_path: Path
) -> None:  # FM-5
    (tmp_path / "wait.yaml").write_text(FLOW.replace("FOLDER", str(tmp_path)))
    data, note = tmp_path / ".mendflow", tmp_path / ".mendflow" / "server.json"
    serving = command_line.start("serve", "--port", "0", "--jobs", "1")
    await server.until(note.exists, "the server")
    case = command_line.json("start", "wait.yaml")["id"]
    (pid,) = await pids_in(server, tmp_path / "begun")
    orphan = holder(data / "work" / "agent.lock")
    serving.kill()
    serving.wait()
    first = note.read_bytes()
    again = command_line.start("serve", "--port", "0", "--jobs", "1")
    await server.until(lambda: note.read_bytes() != first, "the next server")
    log = data / "work" / "pilot.log"
    await server.until(lambda: "the server is now at" in log.read_text(), "the pilot to come over")
    assert holder(data / "work" / "agent.lock") == orphan and not dead(pid)
    (tmp_path / "go").touch()
    await server.until(lambda: command_line.json("cases")[0]["status"] == "completed", "the case to end")
    assert [each["id"] for each in command_line.json("cases")] == [case]
    assert len((tmp_path / "begun").read_text().split()) == 1, "the job was started once"
    again.terminate()
    out, _ = again.communicate(timeout=PATIENCE_S)
    assert again.returncode == 0 and "nothing is lost" in out, out
    assert holder(data / "work" / "agent.lock") is None, "the pilot ended with the server that took it over"


async def test_a_pilot_follows_its_server_and_its_token(server: Server, hire: Hire, tmp_path: Path) -> None:
    note = tmp_path / "server.json"
    pilot = hire("--server-file", str(note))
    job = await server.shell(waiting_command(tmp_path))
    await pids_in(server, tmp_path / "a")
    await server.until(lambda: job in server.ledger.beats, "it to be named")
    await server.down()
    server.port, server.ledger.token = 0, "sesame"
    await server.up()
    note.write_bytes(msgspec.json.encode({"url": server.url, "token": "sesame", "pid": 1}))
    (tmp_path / "go").touch()
    assert (await server.outcome(job)).ok
    assert server.ledger.accepted_fences[job] == [1]
    server.ledger.token = "barley"  # the same place, but a server that was started anew
    note.write_bytes(msgspec.json.encode({"url": server.url, "token": "barley", "pid": 2}))
    assert (await server.outcome(await server.shell("true"))).ok
    assert pilot.process.poll() is None


@pytest.mark.full
async def test_what_the_pilot_says_of_its_server_is_that_it_is_away_and_that_it_is_back(
    server: Server, hire: Hire
) -> None:
    pilot = hire()
    assert (await server.outcome(await server.shell("true"))).ok
    assert pilot.process.stderr is not None
    os.set_blocking(pilot.process.stderr.fileno(), False)
    said = ""

    def says(words: str) -> bool:
        nonlocal said
        assert pilot.process.stderr is not None
        said += (pilot.process.stderr.read() or b"").decode()
        return words in said

    for _ in range(2):
        said = ""
        await server.down()
        await server.until(lambda: says("the server is away"), "the pilot to see that")
        await server.up()
        await server.until(lambda: says("the server is back"), "the pilot to see that")
    os.set_blocking(pilot.process.stderr.fileno(), True)


async def test_a_lock_that_names_somebody_else_gets_nobody_killed(tmp_path: Path) -> None:
    orphan = OrphanPilot(tmp_path)
    assert not orphan.alive
    lock = hold(tmp_path / "agent.lock")
    assert lock is not None and hold(tmp_path / "agent.lock") is None
    other = await asyncio.create_subprocess_exec("sleep", "600")
    os.pwrite(lock, str(other.pid).encode(), 0)
    orphan.kill()
    await orphan.stop(0.05)
    assert orphan.alive and other.returncode is None and not dead(other.pid)
    other.kill()
    await other.wait()
    os.close(lock)
    assert not orphan.alive
