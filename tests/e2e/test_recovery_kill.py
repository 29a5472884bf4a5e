"""The server is killed with -9 again and again while exlets run, while jobs wait in levels, and while cases unwind.

Every effect is a line that a real job writes into one file. Afterwards the file is read: each line stands there once,
in its order, and none is missing. MENDFLOW_CHAOS_SEEDS says how many seeds are played."""

import os
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mendflow.core.model.repair_views import DecisionQuery
from mendflow.formats import load
from mendflow.formats.rules import load_rules

pytestmark = pytest.mark.law

SEEDS = int(os.environ.get("MENDFLOW_CHAOS_SEEDS", "1"))
CASES = 6
KILLS_MIN = 4
PATIENCE_S = 400

FILES = {
    # The job fails until it is mended. Its exlet has a job of its own, a worklet, and writes into the case.
    "exlets.yaml": """
name: exlets
inputs: {log: {type: string}}
variables: {mended: "no"}
steps:
  - name: work
    run: |
      echo "$MENDFLOW_CASE ${FIXED:-broken}" >> ${{ inputs.log }}
      test -n "${FIXED:-}" || exit 7
outputs: {mended: "${{ mended }}"}
""",
    "worklet.yaml": """
name: worklet
inputs: {log: {type: string}, mends: {type: string}}
steps:
  - run: echo "${{ inputs.mends }} worklet" >> ${{ inputs.log }}
  - run: echo "${{ inputs.mends }} worklet-end" >> ${{ inputs.log }}
outputs: {mended: "yes"}
""",
    "rules.yaml": """
rules: exlets
abort:
  work:
    - if: fault.exit_code == 7
      do: repair
exlets:
  repair:
    - run: echo "${{ case.id }} exlet" >> ${{ case.data.log }}
    - compensate: worklet.yaml
      with: {log: "${{ case.data.log }}", mends: "${{ case.id }}"}
      write: all
    - re-submit:
      env: {FIXED: fixed}
    - run: echo "${{ case.id }} exlet-end" >> ${{ case.data.log }}
""",
    # The job asks to be tried again later, twice.
    "levels.yaml": """
name: levels
inputs: {log: {type: string}}
steps:
  - name: work
    run: |
      echo "$MENDFLOW_CASE try" >> ${{ inputs.log }}
      test "$(grep -c "^$MENDFLOW_CASE try" ${{ inputs.log }})" -ge 3 || exit 75
""",
}
# Four steps are done, the fifth cannot be.
UNWINDING_STEP = """
  - name: step-{n}
    run: echo "$MENDFLOW_CASE do-{n}" >> ${{{{ inputs.log }}}}; echo "case=$MENDFLOW_CASE" >> "$MENDFLOW_OUTPUT"
    compensation: echo "${{{{ jobs.step-{n}.outputs.case }}}} undo-{n}" >> ${{{{ inputs.log }}}}
"""
FILES["unwinding.yaml"] = (
    "name: unwinding\ninputs: {log: {type: string}}\nsteps:"
    + "".join(UNWINDING_STEP.format(n=n) for n in (1, 2, 3, 4))
    + "  - name: last\n    run: exit 1\n"
)

EXPECTED = {
    "exlets": ["broken", "exlet", "worklet", "worklet-end"],
    "levels": ["try", "try", "try"],
    "unwinding": [f"do-{n}" for n in (1, 2, 3, 4)] + [f"undo-{n}" for n in (4, 3, 2, 1)],
}
"""The lines of a case of each flow, in their order. Those that an exlet has after its re-submit run beside the job."""

BESIDE = {"exlets": {"fixed", "exlet-end"}, "levels": set[str](), "unwinding": set[str]()}
ENDS = {"exlets": "completed", "levels": "completed", "unwinding": "failed"}
EXLETS = {"exlets": ["repair"], "levels": ["later", "later"], "unwinding": ["give-up"]}


@pytest.fixture
def restless(world: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("MENDFLOW_LEVELS", "600 ms, 900 ms, 1 s")
    world.lease_s = 30.0  # a server that is slow to come back is to cost no lease: no attempt is lost here
    for name, text in FILES.items():
        (world.folder / name).write_text(text)
    world.start_server()
    world.wait_for_server()
    world.start_pilot("east", slots=4)
    for flow in ENDS:
        world.client.deploy(load(world.folder / f"{flow}.yaml"))
    world.client.put_rules(load_rules(world.folder / "rules.yaml"))
    yield world


@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(1, SEEDS + 1))
def test_no_step_of_a_repair_is_skipped_or_repeated_while_the_server_is_killed(restless: Any, seed: int) -> None:
    # AD-2 AD-5 EX-3: laws 1, 4 and 6 in the middle of exlets, levels and unwinding
    log, chance = restless.folder / "log", random.Random(seed)
    cases: dict[str, str] = {}
    kills = 0
    end = time.monotonic() + PATIENCE_S
    for number in range(CASES):
        for flow in ENDS:
            cases[restless.client.start(flow, {"log": str(log)}, key=f"{flow}-{number}").id] = flow
        kills += _kill(restless, chance)
    while kills < KILLS_MIN or not _all_over(restless, cases):
        assert time.monotonic() < end, f"not over after {kills} kills: {[restless.client.case(id) for id in cases]}"
        kills += _kill(restless, chance) if kills < 3 * KILLS_MIN else 0
        time.sleep(0.2)
    lines = _lines(log)
    for case, flow in cases.items():
        _check(restless, case, flow, lines.get(case, []))


def _kill(world: Any, chance: random.Random) -> int:
    """Let it work for a while, kill it, and start it again."""
    time.sleep(chance.uniform(0.05, 1.2))
    world.kill_server()
    time.sleep(chance.uniform(0.0, 0.3))
    world.start_server()
    world.wait_for_server()
    return 1


def _all_over(world: Any, cases: dict[str, str]) -> bool:
    """Cases and their exlets: the last steps of an exlet may be behind its case."""
    live = [each.id for status in ("running", "suspended") for each in world.client.cases(status=status, limit=1000)]
    return not live and all(world.client.case(case).status not in ("running", "suspended") for case in cases)


def _lines(log: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in log.read_text().splitlines():
        case, what = line.split()
        found.setdefault(case, []).append(what)
    return found


def _check(world: Any, case: str, flow: str, lines: list[str]) -> None:
    view = world.client.case(case)
    assert view.status == ENDS[flow], (view, lines)
    beside = BESIDE[flow]
    assert [line for line in lines if line not in beside] == EXPECTED[flow], (case, lines)
    assert sorted(line for line in lines if line in beside) == sorted(beside), (case, lines)
    decided = world.client.decisions(DecisionQuery(case=case, limit=100))
    done = [each.exlet for each in sorted(decided, key=lambda each: each.at) if each.exlet]
    assert done == EXLETS[flow], (case, done)
    if flow == "exlets":
        assert view.outputs == {"mended": "yes"}
