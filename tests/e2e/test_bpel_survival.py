"""Processes with JSDL jobs survive what happens to their jobs: the process is told nothing, and nothing in it says so.

The processes are the shipped ones. What fails is around them: the programs that their jobs run, the pilots, the files,
the meta-scheduler, the line that an end is told by. Each job leaves a line for each time that it was begun."""

import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import World
from tests.e2e.soap_client import Asking, example, sorting

PATTERNS = ("synchronous", "polling", "callback", "fire-and-forget")
SORT = "<posix:Executable>/usr/bin/sort</posix:Executable>"
LITTLE = (
    "</jsdl:Application>",
    "</jsdl:Application><jsdl:Resources><jsdl:IndividualPhysicalMemory><jsdl:UpperBoundedRange>60000000"
    "</jsdl:UpperBoundedRange></jsdl:IndividualPhysicalMemory></jsdl:Resources>",
)
HUNGRY = "python3 -c 'a = bytearray(80_000_000); a[::4096] = bytes(len(a[::4096])); import time; time.sleep(0.7)'"
LEVELS = "300 ms, 4 s, 20 s"
SAID = {"fire-and-forget": "both jobs have been handed over"}
DONE = "both jobs have completed"


@pytest.fixture
def served(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv("MENDFLOW_LEVELS", LEVELS)
    world.lease_s = 3.0
    world.start_server()
    world.wait_for_server()
    return world


def program(folder: Path, name: str, trouble: str) -> tuple[str, str]:
    """What is run instead of the sorting itself: it notes that it was begun, has its trouble, and sorts."""
    path = folder / f"{name}.sh"
    path.write_text(
        f"#!/bin/sh\necho begun >> {folder}/{name}.begun\nn=$(wc -l < {folder}/{name}.begun)\n{trouble}\n"
        "exec /usr/bin/sort\n"
    )
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return SORT, f"<posix:Executable>{path}</posix:Executable>"


def begun(folder: Path, name: str) -> int:
    path = folder / f"{name}.begun"
    return path.read_text().count("begun") if path.exists() else 0


def ask_all(world: Any, folder: Path, trouble: str, *changes: tuple[str, str]) -> dict[str, Asking]:
    """A request to each of the four processes, whose sorting has this trouble."""
    asked = {}
    for name in PATTERNS:
        world.client.deploy(example(name, folder / "flows", program(folder, name, trouble), *changes))
        request = sorting(folder, name, folder / "in.txt")
        asked[name] = Asking(f"{world.url}/soap/flows/{name}", request, f"urn:{name}")
    return asked


def all_said(world: Any, folder: Path, asked: dict[str, Asking]) -> None:
    """All four answered as if nothing had happened, and their files are there."""
    for name in PATTERNS:
        assert asked[name].said() == SAID.get(name, DONE), name
    for name in PATTERNS:
        world.until((folder / f"{name}.sorted").exists, f"what {name} sorts")
        assert (folder / f"{name}.sorted").read_text() == "apple\npear\nplum\n"
    for case in world.client.cases():
        if case.flow in PATTERNS:
            assert (case.status, case.fault) == ("completed", None)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "in.txt"
    path.write_text("pear\napple\nplum\n")
    return path


def test_jobs_that_run_out_of_memory_get_more(served: World, tmp_path: Path, source: Path) -> None:  # FM-8 FM-10
    served.start_pilot("east", 4)
    all_said(served, tmp_path, ask_all(served, tmp_path, HUNGRY, LITTLE))
    assert {name: begun(tmp_path, name) for name in PATTERNS} == dict.fromkeys(PATTERNS, 2)


def test_jobs_whose_node_is_lost_run_on_another(served: World, tmp_path: Path, source: Path) -> None:  # FM-8 FM-10
    served.start_pilot("east", 4)
    asked = ask_all(served, tmp_path, "test $n -ge 2 || sleep 300")
    served.until(lambda: all(begun(tmp_path, name) for name in PATTERNS), "all jobs to run")
    served.kill_pilot("east", whole=True)
    del served.pilots["east"]
    served.start_pilot("west", 4)
    all_said(served, tmp_path, asked)
    assert {name: begun(tmp_path, name) for name in PATTERNS} == dict.fromkeys(PATTERNS, 2)


def test_jobs_whose_source_is_gone_wait_until_it_is_back(served: World, tmp_path: Path) -> None:  # FM-6 FM-8
    served.start_pilot("east", 4)
    asked = ask_all(served, tmp_path, "")
    decided = served.client.decisions
    served.until(lambda: sum(each.exlet == "later" for each in decided()) >= 3, "waits in a level")
    (tmp_path / "in.txt").write_text("pear\napple\nplum\n")
    all_said(served, tmp_path, asked)
    assert {name: begun(tmp_path, name) for name in PATTERNS} == dict.fromkeys(PATTERNS, 1)


def test_processes_whose_server_is_killed_find_their_jobs_again(
    served: World, tmp_path: Path, source: Path
) -> None:  # FM-8 FM-10
    served.lease_s = 30.0
    served.kill_server()
    served.start_server()
    served.wait_for_server()
    served.start_pilot("east", 4)
    asked = ask_all(served, tmp_path, f"while ! test -e {tmp_path}/go; do sleep 0.05; done")
    served.until(lambda: all(begun(tmp_path, name) for name in PATTERNS), "all jobs to run")
    served.kill_server()
    (tmp_path / "go").touch()
    served.start_server()
    served.wait_for_server()
    again = {name: Asking(each.url, each.body, each.id) for name, each in asked.items()}
    all_said(served, tmp_path, again)
    assert {name: begun(tmp_path, name) for name in PATTERNS} == dict.fromkeys(PATTERNS, 1)


@pytest.fixture
def elsewhere(served: World, tmp_path: Path) -> Iterator[World]:
    """A meta-scheduler of its own, which is not there yet."""
    (tmp_path / "far").mkdir()
    far = World(tmp_path / "far")
    yield far
    far.stop()


def ask_elsewhere(served: World, far: World, folder: Path, name: str, trouble: str) -> Asking:
    """A request to a process whose queue is on another server."""
    flow = example(name, folder / "flows", program(folder, name, trouble), jobs=f"{far.url}/soap/jobs")
    served.client.deploy(flow)
    return Asking(f"{served.url}/soap/flows/{name}", sorting(folder, name, folder / "in.txt"), f"urn:{name}")


def test_a_process_waits_for_a_meta_scheduler_that_is_down_when_a_job_is_submitted(
    served: World, elsewhere: World, tmp_path: Path, source: Path
) -> None:  # FM-8 FM-10 FM-12
    asked = ask_elsewhere(served, elsewhere, tmp_path, "callback", "")
    served.until(lambda: [each for each in served.client.decisions() if each.exlet == "later"], "a wait")
    elsewhere.start_server()
    elsewhere.wait_for_server()
    elsewhere.start_pilot("far", 2)
    assert asked.said() == DONE
    assert begun(tmp_path, "callback") == 1


def test_an_end_that_nobody_could_be_told_is_told_until_somebody_hears_it(
    served: World, elsewhere: World, tmp_path: Path, source: Path
) -> None:  # FM-8 FM-10
    elsewhere.start_server()
    elsewhere.wait_for_server()
    elsewhere.start_pilot("far", 2)
    asked = ask_elsewhere(
        served, elsewhere, tmp_path, "callback", f"while ! test -e {tmp_path}/go; do sleep 0.05; done"
    )
    served.until(lambda: begun(tmp_path, "callback"), "the job to run")
    served.kill_server()
    (tmp_path / "go").touch()
    elsewhere.until(lambda: [each for each in elsewhere.client.cases() if each.status == "completed"], "its end")
    served.start_server()
    served.wait_for_server()
    assert Asking(asked.url, asked.body, asked.id).said() == DONE
    assert begun(tmp_path, "callback") == 1


def test_a_job_whose_line_is_cut_while_it_is_waited_for_is_found_again(
    served: World, elsewhere: World, tmp_path: Path, source: Path
) -> None:  # FM-8 FM-10
    elsewhere.lease_s = 30.0
    elsewhere.start_server()
    elsewhere.wait_for_server()
    elsewhere.start_pilot("far", 2)
    wait = f"while ! test -e {tmp_path}/go; do sleep 0.05; done"
    asked = ask_elsewhere(served, elsewhere, tmp_path, "synchronous", wait)
    served.until(lambda: begun(tmp_path, "synchronous"), "the job to run")
    elsewhere.kill_server()
    served.until(lambda: [each for each in served.client.decisions() if each.exlet == "later"], "a wait")
    elsewhere.start_server()
    elsewhere.wait_for_server()
    (tmp_path / "go").touch()
    assert asked.said() == DONE
    assert begun(tmp_path, "synchronous") == 1, "it is the job that was taken before"
