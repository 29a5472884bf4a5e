"""Files arrive in a folder while the server that looks at it is killed with -9: each starts one case, and the one that
is no good is told of, on this machine's loopback."""

import json
import random
import shutil
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from mendflow.client import SyncClient
from mendflow.core.model.alerts import Notification, WebhookSpec
from mendflow.core.model.views import CaseView
from mendflow.formats import load
from tests.e2e.site import Site

EXAMPLE = Path(__file__).parents[2] / "examples" / "tasks" / "arrival.yaml"
TABLES = 8
KILLS = 3


class Operator(ThreadingHTTPServer):
    """Whoever is told of failures."""

    def __init__(self) -> None:
        self.got: list[Notification] = []
        super().__init__(("127.0.0.1", 0), Told)
        self.url = f"http://127.0.0.1:{self.server_address[1]}/failed"


class Told(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        assert isinstance(self.server, Operator)
        self.server.got.append(Notification(**body))
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def operator() -> Iterator[Operator]:
    with Operator() as served:
        thread = threading.Thread(target=served.serve_forever)
        thread.start()
        yield served
        served.shutdown()
        thread.join()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    site = Site(tmp_path, f"sqlite://{tmp_path}/store.db", lease_s=4)
    yield site
    site.close()


def test_each_table_is_counted_once_and_the_bad_one_is_told_of(site: Site, operator: Operator) -> None:
    chance = random.Random(3)
    incoming = site.folder / "incoming"
    incoming.mkdir()
    client = site.serve("one")
    client.add_webhook(WebhookSpec(url=operator.url, name="operator", on=()))
    site.pilot("pilot", "one")
    client.deploy_with_triggers(load(Path(shutil.copy(EXAMPLE, site.folder))))
    (incoming / "bad.csv").write_text("apples;4\npears;5\n")
    (incoming / "notes.txt").write_text("no table\n")
    half = incoming / ".slow.csv"  # its writer renames it when it is complete
    half.write_text("apples,1\n")
    for number in range(TABLES):
        (incoming / f"table-{number}.csv").write_text("apples,1\n" * (number + 1))
        if number < KILLS:
            time.sleep(chance.uniform(0.5, 4))  # no proof hangs on when it is
            site.processes["one"].kill()
            site.processes["one"].wait()
            site.start_server("one")
            site.until(lambda: client.health().status == "ok", "the server to be back")
    half.write_text("apples,1\nplums,1000\n")
    half.rename(incoming / "slow.csv")

    def over() -> bool:
        cases = arrivals(client)
        return len(cases) >= TABLES + 2 and all(case.ended_at for case in cases)

    site.until(over, "all cases to end")
    site.until(lambda: bool(operator.got), "the failure to be told")
    cases = arrivals(client)
    ended = {name_of(case): case for case in cases}
    assert len(cases) == len(ended) == TABLES + 2
    assert ended.pop("bad.csv").status == "failed"
    wanted = {f"table-{number}.csv": number + 1 for number in range(TABLES)} | {"slow.csv": 2}
    assert {name: case.outputs["rows"] for name, case in ended.items()} == wanted
    assert {(each.kind, each.flow) for each in operator.got} == {("failed", "arrival")}
    assert len({each.id for each in operator.got}) == 1  # at least once, and under one id
    [view] = client.watches()
    assert (view.flow, view.known, view.left_out) == ("arrival", TABLES + 2, 0), view


def arrivals(client: SyncClient) -> list[CaseView]:
    """Without the repairs of jobs that were lost while the server was away for longer than a lease."""
    return [case for case in client.cases(limit=1000) if not case.mends_item]


def name_of(case: CaseView) -> str:
    name: str = case.inputs["file"]["name"]
    return name
