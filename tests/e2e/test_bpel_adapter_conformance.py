"""Processes that nobody here wrote, each as it is and adapted: both do the same with every message that they are sent.

The suite has a player of its own, which is asked to send the messages and to judge the answers."""

import importlib.util
import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from mendflow.formats import load
from mendflow.formats.bpel.adapter import adapt
from tests.e2e.conftest import World
from tests.formats.bpel.adapter.bank import save
from tests.formats.bpel.test_conformance import CONFORMANCE, processes

NAMED = re.compile(r'(<process[^>]*?\sname=")([^"]*)"', re.DOTALL)


@pytest.fixture
def served(world: World) -> World:
    world.start_server()
    world.wait_for_server()
    return world


def player() -> ModuleType:
    found = importlib.util.spec_from_file_location("replay", CONFORMANCE.parent / "replay.py")
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def calling() -> Iterator[dict[str, Any]]:
    """The tests of the suite whose processes invoke a partner."""
    if processes():
        for test in json.loads((CONFORMANCE / "tests.json").read_text()):
            if "<invoke" in (CONFORMANCE / test["file"]).read_text():
                yield test


def put(folder: Path, test: dict[str, Any], name: str, port: int) -> Path:
    """The process under another name, with its WSDL files, which say where the partner is."""
    path = folder / str(test["file"])
    path.parent.mkdir(parents=True, exist_ok=True)
    for wsdl in CONFORMANCE.glob("*.wsdl"):
        text = wsdl.read_text().replace("PARTNER_IP_AND_PORT", f"127.0.0.1:{port}")
        (folder / wsdl.name).write_text(text)
    path.write_text(NAMED.sub(rf'\g<1>{name}"', (CONFORMANCE / test["file"]).read_text(), count=1))
    return path


def went_well(replay: ModuleType, test: dict[str, Any], endpoint: str, partner: str) -> list[bool]:
    """Of each step whether it went as the suite wants it; after one that did not, its case is over."""
    found = []
    for case in test["cases"]:
        for step in case["steps"]:
            found.append(replay.play_step(step, endpoint, partner, 10) is None)
            if not found[-1]:
                break
    return found


@pytest.mark.timeout(600)
def test_original_and_adapted_do_the_same_with_every_message(served: World, tmp_path: Path) -> None:  # FM-9
    tests = list(calling())
    if not tests:
        return
    replay = player()
    partner = replay.serve(replay.Partner())
    url = f"http://127.0.0.1:{partner.server_port}/bpel-testpartner"
    done: dict[str, list[list[bool]]] = {}
    try:
        for test in tests:
            for kind in ("original", "adapted"):
                name = f"{test['name']}-{kind}"
                path = put(tmp_path / name, test, name, partner.server_port)
                if kind == "adapted":
                    path = save(adapt(path, path.with_name("adapted.bpel")))
                served.client.deploy(load(path))
                went = went_well(replay, test, f"{served.url}/soap/flows/{name}", url)
                done.setdefault(test["name"], []).append(went)
    finally:
        partner.shutdown()
    assert {name: both for name, both in done.items() if both[0] != both[1]} == {}
    assert sum(all(both[1]) for both in done.values()) >= len(tests) - 4
