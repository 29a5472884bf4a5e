"""Three servers as real processes on one PostgreSQL look like one: to whoever submits, lists and sets rules, and to
whoever watches while one of them is killed."""

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mendflow.client import SyncClient
from mendflow.core.model.views import CaseView
from mendflow.formats import load
from mendflow.formats.rules import read_rules
from tests.e2e.postgresql_site import site_on_postgresql
from tests.e2e.site import Site
from tests.patience import PATIENCE_S

SLOW = """
name: slow
inputs: {jobs: {type: list}}
jobs:
  tick: {for-each: "${{ inputs.jobs }}", run: sleep 1}
"""
FAILS = """
name: fails
jobs:
  break: {run: exit 3}
"""
RULES = """
rules: fails
abort:
  - if: fault.exit_code == 3
    do:
      - force-complete:
"""


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with site_on_postgresql(tmp_path) as site:
        yield site


def _deploy(site: Site, client: SyncClient, name: str, text: str) -> None:
    path = site.folder / f"{name}.yaml"
    path.write_text(text)
    client.deploy(load(path))


def _mendflow(site: Site, servers: tuple[str, ...], *words: str) -> "subprocess.Popen[str]":
    urls = ",".join(site.urls[name] for name in servers)
    command = [sys.executable, "-m", "mendflow", *words, "--server", urls]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=site.folder)


def test_three_servers_are_as_good_as_one(site: Site) -> None:  # JS-6 JS-7
    one, two, three = site.serve("one"), site.serve("two"), site.serve("three")
    site.until(lambda: all(len(each.servers()) == 3 for each in (one, two, three)), "the servers to see each other")
    site.pilot("p-two", "two")
    site.pilot("p-three", "three")
    site.until(lambda: len(one.pilots()) == 2, "both pilots to be seen")

    _deploy(site, one, "slow", SLOW)
    _one_key_is_one_case((one, two, three))

    _deploy(site, two, "fails", FAILS)
    three.put_rules(read_rules(RULES, "fails.rules.yaml"))
    mended = two.start("fails")
    assert two.wait(mended.id, timeout_s=60).status == "completed", "a rule of three decides at two"

    case = one.start("slow", {"jobs": list(range(24))})
    site.until(lambda: _done(three, case.id) >= 2, "some of the case to be done, as three sees it")
    assert {each.id for each in three.cases()} == {each.id for each in two.cases()} >= {case.id, mended.id}
    watching = _mendflow(site, ("one", "two", "three"), "watch", case.id)
    waiting = ThreadPoolExecutor(1).submit(_heard, f"{site.urls['one']},{site.urls['three']}", case.id)
    site.until(lambda: _done(two, case.id) >= 6, "more of it to be done")
    site.processes["one"].kill()
    assert two.wait(case.id, timeout_s=120).status == "completed"
    told, _ = watching.communicate(timeout=PATIENCE_S)
    assert watching.returncode == 0 and "completed" in told, told
    assert waiting.result(60) == "completed", "the last that is heard is the end"
    assert {each.id: each.status for each in three.cases()}[case.id] == "completed"


def _one_key_is_one_case(servers: tuple[SyncClient, ...]) -> None:
    def start(client: SyncClient) -> CaseView:
        return client.start("slow", {"jobs": [1]}, key="the same")

    with ThreadPoolExecutor(6) as pool:
        assert len({case.id for case in pool.map(start, servers * 2)}) == 1


def _done(client: SyncClient, case: str) -> int:
    return sum(count.done for count in client.case(case).counts)


def _heard(urls: str, case: str) -> str:
    """The state of the case that its stream of events told last."""
    with SyncClient(urls) as client:
        return [happening.state for happening in client.events(case, kind="case")][-1]
