"""The server is killed with -9 again and again while it reopens the failed cases of a group.

Every effect is a line that a real job writes into one file. Who is not answered asks again, as a person would.
Afterwards each case was reopened once, each job has run as often as its case says, and none was lost.
MENDFLOW_CHAOS_SEEDS says how many seeds are played."""

import os
import random
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from mendflow.client.sync_client import SyncClient
from mendflow.core.model.errors import RequestError
from mendflow.formats import load
from mendflow.formats.rules import load_rules

pytestmark = pytest.mark.law

SEEDS = int(os.environ.get("MENDFLOW_CHAOS_SEEDS", "1"))
CASES = 12
KILLS_MIN = 5
PATIENCE_S = 400

FLOW = """
name: upload
inputs: {log: {type: string}}
jobs:
  prepare: echo "$MENDFLOW_CASE prepared" >> ${{ inputs.log }}
  send:
    needs: prepare
    run: |
      echo "$MENDFLOW_CASE ${LINE:-broken}" >> ${{ inputs.log }}
      test -n "${LINE:-}" || { echo "Error: the line is down" >&2; exit 7; }
  report: {needs: send, run: 'echo "$MENDFLOW_CASE reported" >> ${{ inputs.log }}'}
"""
RULES = """
rules: upload
abort: {send: [{if: fault.exit_code == 7, do: spare}]}
exlets: {spare: [{re-submit: , env: {LINE: spare}}]}
"""


class Asking:
    """Asks the server to take up a group, in a thread of its own: the server may be killed before it answers."""

    def __init__(self, world: Any, group: str, *, retry: bool) -> None:
        self._world, self._group, self._retry = world, group, retry
        self._thread = threading.Thread(target=self._ask)
        self.is_answered = False
        self._thread.start()

    def _ask(self) -> None:
        client = SyncClient(self._world.url)
        try:
            client.apply_rules(self._group, retry=self._retry)
            self.is_answered = True
        except RequestError:
            pass  # it was killed; who asks, asks again
        finally:
            client.close()

    def wait(self) -> bool:
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive(), "an answer, or none, is there in time"
        return self.is_answered


@pytest.mark.timeout(900)
@pytest.mark.parametrize("retry", [False, True], ids=["rules apply", "rerun --group"])
@pytest.mark.parametrize("seed", range(1, SEEDS + 1))
def test_each_failed_case_is_reopened_once_while_the_server_is_killed(world: Any, seed: int, retry: bool) -> None:
    # AD-2 DU-7: laws 1, 4 and 9
    log, chance = world.folder / "log", random.Random(seed)
    world.lease_s = 30.0  # a server that is slow to come back is to cost no lease: no attempt is lost here
    (world.folder / "upload.yaml").write_text(FLOW)
    (world.folder / "upload.rules.yaml").write_text(RULES)
    world.start_server()
    world.wait_for_server()
    world.start_pilot("east", slots=4)
    world.client.deploy(load(world.folder / "upload.yaml"))
    cases = [str(world.client.start("upload", {"log": str(log)}).id) for _ in range(CASES)]
    world.until(lambda: all(world.client.case(case).status == "failed" for case in cases), "all cases to fail")
    [group] = [each.id for each in world.client.failures()]
    world.client.put_rules(load_rules(world.folder / "upload.rules.yaml"))
    end, kills, answers = time.monotonic() + PATIENCE_S, 0, 0
    while kills < KILLS_MIN or not answers or not _all_completed(world, cases):
        assert time.monotonic() < end, f"not over after {kills} kills: {[world.client.case(case) for case in cases]}"
        asking = Asking(world, group, retry=retry)
        if kills < KILLS_MIN:
            kills += _kill(world, chance)
        answers += asking.wait()
    for case in cases:
        assert _lines(log, case) == ["prepared", "broken", "spare", "reported"], case
        history = world.client.history(case)
        assert [entry.what for entry in history].count("reopened") == 1, "\n".join(map(str, history))


def _kill(world: Any, chance: random.Random) -> int:
    """Let it work for a moment, kill it, and start it again."""
    time.sleep(chance.uniform(0.0, 0.25))
    world.kill_server()
    world.start_server()
    world.wait_for_server()
    return 1


def _all_completed(world: Any, cases: list[str]) -> bool:
    return all(world.client.case(case).status == "completed" for case in cases)


def _lines(log: Path, case: str) -> list[str]:
    return [line.split()[1] for line in log.read_text().splitlines() if line.split()[0] == case]
