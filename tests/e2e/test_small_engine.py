"""The engine of examples/engine, of fewer than 100 lines, through all that the exception service does for an engine.

The server and a pilot are real processes; the engine is the example's own code, and speaks to them over HTTP."""

import importlib.util
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mendflow.core.model.repair_views import DecisionQuery, RejectRequest, RepairRequest
from mendflow.formats import load
from mendflow.formats.rules import load_rules
from tests.e2e.conftest import World
from tests.patience import PATIENCE_S

EXAMPLE = Path("examples/engine").absolute()
pytestmark = [pytest.mark.full, pytest.mark.timeout(300)]

RULES = """
rules: meal
selection:
  cook:
    - if: case.data.hungry == "very"
      do: fry
      cornerstone: {case: {data: {hungry: very}}}
    - if: case.data.hungry == "slightly"
      do: simmer
      cornerstone: {case: {data: {hungry: slightly}}}
abort:
  bake:
    - if: fault.exit_code == 7 && item.attempts == 1
      do: again
  burn:
    - if: fault.message.contains("burnt")
      do: give-up
case-external:
  - if: trigger == "guests"
    do: bigger-pot
exlets:
  again:
    steps:
      - restart:
        with: {heat: high}
  give-up:
    steps:
      - force-fail:
        fault: burntMeal
        message: it is burnt for good
  bigger-pot:
    steps:
      - write: {pot: big}
        into: case
  comfort:
    steps:
      - write: {comforted: "yes"}
        into: case
"""
FLOWS = {
    "fry": "name: fry\ninputs: {hungry: {type: string}}\n"
    "steps:\n  - name: pan\n    run: echo dish=fried >> $MENDFLOW_OUTPUT\n"
    "outputs: {dish: '${{ jobs.pan.outputs.dish }}'}\n",
    "simmer": "name: simmer\nsteps:\n  - wait: 1 h\noutputs: {dish: late}\n",
    "boil": "name: boil\nsteps:\n  - name: pot\n    run: echo dish=boiled >> $MENDFLOW_OUTPUT\n"
    "outputs: {dish: '${{ jobs.pot.outputs.dish }}'}\n",
}


@pytest.fixture
def kitchen(world: World) -> Iterator[World]:
    (world.folder / "rules.yaml").write_text(RULES)
    world.start_server()
    world.wait_for_server()
    world.start_pilot("east", 2)
    for name, text in FLOWS.items():
        (world.folder / f"{name}.yaml").write_text(text)
        world.client.deploy(load(world.folder / f"{name}.yaml"))
    world.client.put_rules(load_rules(EXAMPLE / "rules.yaml"))
    world.client.put_rules(load_rules(world.folder / "rules.yaml"))
    yield world


def small_engine(url: str, name: str = "small") -> Any:
    described = importlib.util.spec_from_file_location("small_engine_example", EXAMPLE / "engine.py")
    assert described is not None and described.loader is not None
    module = importlib.util.module_from_spec(described)
    described.loader.exec_module(module)
    return module.Engine(url, name)


def run_in_thread(engine: Any) -> threading.Thread:
    serving = threading.Thread(target=engine.serve, args=(200,), daemon=True)
    serving.start()
    return serving


def begin(world: World, case: str, steps: dict[str, str | None], **data: str) -> tuple[Any, threading.Thread]:
    engine = small_engine(world.url)
    engine.start(case, "meal", steps, data)
    return engine.cases[case], run_in_thread(engine)


def test_the_engine_is_whole_and_has_fewer_than_a_hundred_lines() -> None:
    # EX-10
    text = (EXAMPLE / "engine.py").read_text()
    assert len(text.splitlines()) < 100
    imported = {line.split()[1].split(".")[0] for line in text.splitlines() if line.startswith(("import", "from"))}
    assert imported <= sys.stdlib_module_names


def test_its_scenarios_on_a_real_server(kitchen: World) -> None:
    # EX-2 EX-4 EX-8 EX-9 EX-10 EX-11
    _suspend_worklet_write_continue(kitchen)
    _restart(kitchen)
    _fail(kitchen)
    _select(kitchen)
    _reject(kitchen)
    _raise(kitchen)
    _mend(kitchen)
    _steer(kitchen)


def _suspend_worklet_write_continue(world: World) -> None:
    ended = subprocess.run(
        [sys.executable, EXAMPLE / "engine.py", world.url, "s-1"],
        stdin=(EXAMPLE / "ship.json").open(),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
    )
    status, _, data = ended.stdout.partition(" ")
    assert (status, json.loads(data)) == ("completed", {"crew": 7})
    told = world.client.history("small:s-1")
    does = [
        entry.what
        for entry in told
        if entry.source == "service" and entry.what in ("suspended", "written", "continued")
    ]
    assert does == ["suspended", "written", "continued"]
    assert (told[0].what, told[-1].what) == ("started", "completed")
    assert "<trace>" in world.client.xes("small:s-1")


def _restart(world: World) -> None:
    case, serving = begin(world, "restart", {"bake": 'test "$heat" = high || exit 7'})
    serving.join(PATIENCE_S)
    assert (case["status"], case["data"]) == ("completed", {"heat": "high"})
    [decision] = world.client.decisions(DecisionQuery(case="small:restart"))
    assert (decision.exlet, decision.result, decision.fault and decision.fault.exit_code) == ("again", "restarted", 7)


def _fail(world: World) -> None:
    case, serving = begin(world, "fail", {"burn": "echo burnt; exit 1"})
    serving.join(PATIENCE_S)
    assert case["status"] == "failed"
    told = world.client.why("small:fail")
    assert (told.state, told.repairs[0].exlet) == ("failed", "give-up")


def _select(world: World) -> None:
    case, serving = begin(world, "select", {"cook": None, "eat": 'test "$dish" = fried'}, hungry="very")
    serving.join(PATIENCE_S)
    assert (case["status"], case["data"]["dish"]) == ("completed", "fried")
    # no rule chooses: it waits for a person
    case, serving = begin(world, "choose", {"cook": None}, hungry="no")
    world.until(lambda: world.client.decisions(DecisionQuery(case="small:choose", state="waiting")), "the decision")
    assert any("waits for a worklet" in fact for fact in world.client.why("small:choose").facts)
    world.client.mend("small:choose", RepairRequest(exlet="boil"))
    serving.join(PATIENCE_S)
    assert (case["status"], case["data"]["dish"]) == ("completed", "boiled")


def _reject(world: World) -> None:
    case, serving = begin(world, "reject", {"cook": None}, hungry="slightly", hurry="yes")
    world.until(lambda: world.client.decisions(DecisionQuery(case="small:reject")), "the decision")
    [wrong] = world.client.decisions(DecisionQuery(case="small:reject"))
    assert wrong.exlet == "simmer"
    world.client.reject_choice(
        RejectRequest(decision=wrong.id, exlet="boil", condition="has(case.data.hurry)", note="in a hurry")
    )
    serving.join(PATIENCE_S)
    assert (case["status"], case["data"]["dish"]) == ("completed", "boiled")
    states = {each.exlet: each.state for each in world.client.decisions(DecisionQuery(case="small:reject"))}
    assert states == {"simmer": "rejected", "boil": "done"}


def _raise(world: World) -> None:
    hold = world.folder / "raise"
    case, serving = begin(world, "raise", {"wait": f"until test -e {hold}; do sleep 0.1; done", "eat": "true"})
    world.until(lambda: world.client.case("small:raise").status == "running", "the case")
    assert [each.trigger for each in world.client.triggers("small:raise")] == ["guests"]
    assert world.client.raise_trigger("small:raise", "guests").exlet == "bigger-pot"
    unknown = world.client.raise_trigger("small:raise", "fire", data={"where": "kitchen"})
    assert unknown.state == "waiting"
    hold.touch()
    world.until(lambda: case["suspended"], "the safeguard")
    world.until(lambda: "'fire' was raised" in world.client.why("small:raise").sentence, "the engine to tell of it")
    assert any("small:raise" in alert.sentence for alert in world.client.alerts(severity="info", every=True))
    world.client.mend("small:raise", RepairRequest(exlet="comfort"))
    serving.join(PATIENCE_S)
    assert (case["status"], case["data"]) == ("completed", {"pot": "big", "comforted": "yes"})


def _mend(world: World) -> None:
    hold = world.folder / "mend"
    case, serving = begin(world, "mend", {"wait": f"until test -e {hold}; do sleep 0.1; done"})
    world.until(lambda: world.client.case("small:mend").status == "running", "the case")
    assert world.client.mend("small:mend", RepairRequest(exlet="comfort")).state == "running"
    hold.touch()
    serving.join(PATIENCE_S)  # two engines of one name would take each other's orders
    assert case["status"] == "completed"


def _steer(world: World) -> None:
    """It has more steps than it can do before it is told to stop: it obeys between two of them."""
    case, serving = begin(world, "steer", {f"step-{number}": "sleep 0.2" for number in range(1_000)})
    world.until(lambda: world.client.items("small:steer"), "its first item")
    assert world.client.suspend("small:steer").status == "suspended"
    world.until(lambda: case["suspended"], "the order")
    assert world.client.items("small:steer")[0].state == "suspended"
    assert world.client.resume("small:steer").status == "running"
    world.client.cancel("small:steer", reason="enough")
    serving.join(PATIENCE_S)
    assert case["status"] == "cancelled"
    world.until(lambda: world.client.case("small:steer").status == "cancelled", "its end")
