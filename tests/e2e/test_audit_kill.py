"""A server that is killed under load has every operation that it acknowledged on record, once; and the commands show
the record, verify it, and see what was changed in it. SE-4"""

import json
import sqlite3
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from mendflow.client import SyncClient
from mendflow.core.model.audit import AuditQuery
from mendflow.core.model.errors import RequestError
from mendflow.core.model.named_limits import LimitCount
from tests.e2e.site import Site

WRITERS = 8
pytestmark = pytest.mark.law


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    site = Site(tmp_path, "")
    try:
        yield site
    finally:
        site.close()


def mendflow(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "mendflow", *words], capture_output=True, text=True, check=False)


def test_a_server_that_is_killed_under_load_has_all_that_it_acknowledged_on_record_once(site: Site) -> None:  # SE-4
    url = f"http://127.0.0.1:{site.port_of('one')}"
    acknowledged: list[str] = []
    for life in range(3):
        site.start_alone("one")
        with SyncClient(url) as client:
            site.until(lambda: client.health().status == "ok", "the server")
            threads = [
                threading.Thread(target=_write, args=(url, f"l{life}-w{number}", acknowledged))
                for number in range(WRITERS)
            ]
            for thread in threads:
                thread.start()
            site.until(partial(_are_enough, acknowledged, 100 * (life + 1)), "operations")
        site.processes["one"].kill()
        site.processes["one"].wait()
        for thread in threads:
            thread.join()
    site.start_alone("one")
    with SyncClient(url) as client:
        site.until(lambda: client.health().status == "ok", "the server")
        found: list[str] = []
        after = ""
        while True:
            page = client.find_audit(AuditQuery(operation="set_limit", limit=1000, after=after))
            found += [entry.object for entry in page.rows if entry.outcome == "done"]
            if not (after := page.next):
                break
        [chain] = client.verify_audit()
    counts = Counter(found)
    assert not [name for name in acknowledged if counts[name] != 1]
    assert chain.problem == ""
    assert chain.entries >= len(acknowledged) >= 300
    _check_commands(site, url, acknowledged[0])


def _are_enough(acknowledged: list[str], count: int) -> bool:
    return len(acknowledged) >= count


def _write(url: str, name: str, acknowledged: list[str]) -> None:
    with SyncClient(url, timeout_s=5) as client:
        for number in range(100_000):
            try:
                client.set_limit(f"{name}-{number}", LimitCount(1))
            except RequestError:
                return
            acknowledged.append(f"{name}-{number}")


def _check_commands(site: Site, url: str, name: str) -> None:
    shown = mendflow("admin", "audit", "--object", name, "--json", "--server", url)
    assert [entry["operation"] for entry in json.loads(shown.stdout)] == ["set_limit"]
    table = mendflow("admin", "audit", "--since", "1h", "--operation", "set_limit", "--limit", "5", "--server", url)
    assert table.stdout.count("set_limit") == 5
    export = site.folder / "audit.jsonl"
    assert mendflow("admin", "audit", "export", str(export), "--server", url).returncode == 0
    whole = mendflow("admin", "audit", "verify", "--against", str(export), "--server", url)
    assert (whole.returncode, "whole" in whole.stdout) == (0, True), whole.stdout + whole.stderr
    site.processes["one"].terminate()
    site.processes["one"].wait()
    data = site.folder / "one"
    with sqlite3.connect(data / "store.db") as file:
        changed = file.execute(
            "UPDATE entries SET body = replace(CAST(body AS TEXT), ?, 'nobody') WHERE CAST(body AS TEXT) LIKE ?",
            (name, f'%"object":"{name}"%'),
        )
        assert changed.rowcount == 1
    broken = mendflow("admin", "audit", "verify", "--data-dir", str(data))
    assert (broken.returncode, "BROKEN" in broken.stdout) == (1, True), broken.stdout + broken.stderr
