"""A store is copied while cases start and end on it. The copy, restored elsewhere, has every case that was acknowledged
before, and these go on to their end."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mendflow.client import SyncClient
from mendflow.core.model.views import CaseQuery
from mendflow.formats import load
from tests.e2e.site import Site
from tests.servers.postgresql import postgresql_server

FLOW = """
name: copied
inputs: {number: 0}
jobs:
  make:
    run: for i in $(seq 200); do echo "$INPUT_NUMBER $i"; done > lines.txt
    files: {lines: lines.txt}
  use:
    inputs: {lines.txt: "${{ jobs.make.files.lines }}"}
    run: echo "count=$(wc -l < lines.txt)" >> "$MENDFLOW_OUTPUT"
outputs: {count: "${{ jobs.use.outputs.count }}"}
"""


def mendflow(*words: str | Path) -> str:
    command = [sys.executable, "-m", "mendflow", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@contextmanager
def site_at(folder: Path, store: str) -> Iterator[Site]:
    folder.mkdir(exist_ok=True)
    site = Site(folder, store)
    try:
        yield site
    finally:
        site.close()


class Starting:
    """Starts one case after another until it is told to stop; `acknowledged` has those that the server said it has."""

    def __init__(self, url: str) -> None:
        self.acknowledged: list[str] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._go, args=(url,))
        self._thread.start()

    def _go(self, url: str) -> None:
        with SyncClient(url) as client:
            while not self._stop.is_set():
                number = len(self.acknowledged)
                self.acknowledged.append(client.start("copied", {"number": number}, key=f"k{number}").id)

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_nothing_that_was_acknowledged_before_is_missing(kind: str, tmp_path: Path) -> None:  # SE-7
    if kind == "sqlite":
        check_backup(tmp_path, "", "")
        return
    with postgresql_server() as server:
        check_backup(tmp_path, f"{server.url}?schema=original", f"{server.url}?schema=restored")


def check_backup(folder: Path, store: str, other_store: str) -> None:
    (folder / "copied.yaml").write_text(FLOW)
    backup, place = folder / "backup", folder / "there" / "east"
    with site_at(folder / "here", store) as site:
        east = begin(site)
        site.pilot("pilot", "east")
        east.deploy(load(folder / "copied.yaml"))
        starting = Starting(site.urls["east"])
        try:
            site.until(lambda: len(over(east)) >= 5, "some cases to end")
            before, ended = list(starting.acknowledged), over(east)
            source = ["--store", store] if store else ["--data-dir", site.folder / "east"]
            mendflow("admin", "backup", backup, *source)
        finally:
            starting.stop()
    to = ["--store", other_store] if other_store else ["--data-dir", place]
    mendflow("admin", "restore", backup, *to)
    with site_at(folder / "there", other_store) as site:
        east = begin(site)
        present = {case.id for case in east.find_cases(CaseQuery(limit=10_000)).rows}
        assert set(before) <= present and ended <= over(east)
        site.pilot("pilot", "east")
        site.until(lambda: over(east) == present, "all cases to end there")
        assert {east.case(case).outputs["count"] for case in before} == {200}


def begin(site: Site) -> SyncClient:
    """A server, on the store of the site or on one of its own."""
    if site.store_url:
        return site.serve("east")
    site.urls["east"] = f"http://127.0.0.1:{site.port_of('east')}"
    site.start_alone("east")
    client = SyncClient(site.urls["east"])
    site.until(lambda: client.health().status == "ok", "the server to be there")
    return client


def over(client: SyncClient) -> set[str]:
    rows = client.find_cases(CaseQuery(limit=10_000)).rows
    assert all(case.status in ("running", "completed") for case in rows)
    return {case.id for case in rows if case.status == "completed"}


def test_a_copy_that_was_changed_or_not_finished_and_a_place_with_cases_are_refused(tmp_path: Path) -> None:  # SE-7
    (tmp_path / "copied.yaml").write_text(FLOW)
    data, backup = tmp_path / "data", tmp_path / "backup"
    mendflow("run", tmp_path / "copied.yaml", "--data-dir", data, "--quiet", "--output-dir", tmp_path / "out")
    mendflow("admin", "backup", backup, "--data-dir", data)
    command = [sys.executable, "-m", "mendflow", "admin"]
    for words, told in (
        (["restore", backup, "--data-dir", data], "there is a store at"),
        (["backup", backup, "--data-dir", data], "is not empty"),
        (["restore", data, "--data-dir", tmp_path / "new"], "is no backup"),
    ):
        refused = subprocess.run([*command, *map(str, words)], capture_output=True, text=True, check=False)
        assert refused.returncode != 0 and told in refused.stderr
    with (backup / "store.db").open("r+b") as copy:
        copy.seek(5000)
        copy.write(b"changed")
    again = ["restore", str(backup), "--data-dir", str(tmp_path / "new")]
    refused = subprocess.run([*command, *again], capture_output=True, text=True, check=False)
    assert refused.returncode != 0 and "has changed since" in refused.stderr
    assert not (tmp_path / "new").exists()
