"""A flow with secrets on a real server, in success, failure, retry and kept folder: nothing that is written or shown
holds a value, neither as it is nor in base64."""

import base64
import gzip
import io
import json
import subprocess
import sys
import tarfile
import threading
import urllib.request
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from mendflow.client import SyncClient
from mendflow.core.model.errors import RequestError
from mendflow.core.model.secrets import SecretValue
from mendflow.core.model.views import CASE_END_STATES
from mendflow.formats import load
from tests.e2e.site import Site

FIRST, SECOND = "hunter2/Very+secret=Value", "other:second$Value~of-it"
FLOW = """
name: secretive
on-failure: finish
defaults: {retries: 0}
jobs:
  shown:
    secrets: {TOKEN: api-token, conf/token.txt: {file: api-token}}
    run: |
      test "$(stat -L -c %a conf/token.txt)" = 600
      echo "plain $TOKEN"; cat conf/token.txt; echo
      printf %s "$TOKEN" | base64; echo "$TOKEN" | base64
      for part in $(printf %s "$TOKEN" | grep -o .); do printf %s "$part"; sleep 0.01; done
      for i in $(seq 2000); do echo "line $i of a long log with $TOKEN"; done
      echo "seen=$TOKEN" > $MENDFLOW_OUTPUT
      echo "nothing secret" > conf/other.txt
    files: {conf: conf/}
  again:
    secrets: [api-token]
    retries: 1
    run: |
      echo "attempt $MENDFLOW_ATTEMPT with $API_TOKEN"
      test "$MENDFLOW_ATTEMPT" -gt 1
  kept:
    secrets: {TOKEN: api-token}
    run: |
      echo "token = $TOKEN" > settings.ini
      echo "cannot log in with $TOKEN" >&2; exit 3
  function:
    secrets: {TOKEN: api-token}
    python: work.py:use
  large:
    secrets: {TOKEN: api-token}
    env: {PYTHONHASHSEED: "1"}
    python: work.py:large
  background:
    secrets: {TOKEN: api-token}
    after: other
    run: mkfifo pipe; grep "$TOKEN" pipe & sleep 0.3
  raising:
    secrets: {TOKEN: api-token}
    python: work.py:fail
  other:
    run: env | sort; { cat /proc/[0-9]*/cmdline || true; } | tr '\\0' ' '
"""
WORK = """
import os

def use():
    print("function has", os.environ["TOKEN"])
    for number in range(1000):
        print("line", number, os.environ["TOKEN"])
    return {"token": os.environ["TOKEN"]}

def large():
    return [os.environ["TOKEN"]] * 50_000

def fail():
    raise RuntimeError("no entry with " + os.environ["TOKEN"])
"""


class Collector(BaseHTTPRequestHandler):
    bodies: list[bytes] = []

    def do_POST(self) -> None:
        Collector.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None: ...


@pytest.fixture
def collector() -> Iterator[str]:
    Collector.bodies = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def forms(value: str) -> list[bytes]:
    plain = value.encode()
    coded = [base64.b64encode(plain), base64.b64encode(plain + b"\n"), base64.urlsafe_b64encode(plain)]
    return [plain, json.dumps(value)[1:-1].encode(), *(each.rstrip(b"=")[:-1] for each in coded)]


def contents(name: str, data: bytes) -> Iterator[tuple[str, bytes]]:
    """The bytes of a file, and of what is packed in it."""
    yield name, data
    if data[:2] == b"\x1f\x8b":
        yield from contents(f"{name}!gz", gzip.decompress(data))
    elif data[:4] == b"PK\x03\x04":
        with zipfile.ZipFile(io.BytesIO(data)) as packed:
            for each in packed.namelist():
                yield from contents(f"{name}!{each}", packed.read(each))
    elif data[257:262] == b"ustar":
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            for member in archive.getmembers():
                if (file := archive.extractfile(member)) is not None:
                    yield from contents(f"{name}!{member.name}", file.read())


def test_no_trace_of_a_secret_is_found_anywhere(tmp_path: Path, collector: str) -> None:  # DU-6
    flows, data = tmp_path / "flows", tmp_path / "site"
    flows.mkdir()
    data.mkdir()
    (flows / "secretive.yaml").write_text(FLOW)
    (flows / "work.py").write_text(WORK)
    site = Site(data, "")
    found: dict[str, bytes] = {}
    try:
        site.urls["one"] = f"http://127.0.0.1:{site.port_of('one')}"
        site.start_alone("one", "--otlp", collector)
        client = SyncClient(site.urls["one"])
        site.until(lambda: client.health().status == "ok", "the server to be there")
        site.pilot("p-one", "one")
        told = cli(site, "secrets", "set", "api-token", given=FIRST + "\n")
        assert "secret api-token is set" in told
        client.deploy(load(flows / "secretive.yaml"))
        case = client.start("secretive", {}).id
        site.until(lambda: client.case(case).status in CASE_END_STATES, "the end of the case")
        items = {str(item.item): item for item in client.items(case)}
        states = {name: str(item.state) for name, item in items.items()}
        assert states["shown"] == states["again"] == states["function"] == states["other"] == "completed", states
        assert states["large"] == "completed", states
        assert states["kept"] == states["raising"] == "failed"
        client.set_secret("api-token", SecretValue(SECOND))  # rotated: the next attempt has the new value
        rotated = client.start("secretive", {}).id
        site.until(lambda: client.case(rotated).status in CASE_END_STATES, "the end of the second case")
        for name in items:
            found[f"log of {name}"] = cli(site, "logs", f"{case}:{name}").encode()
            found[f"why of {name}"] = cli(site, "why", f"{rotated}:{name}").encode()
        assert b"plain *****" in found["log of shown"] and b"function has ****" in found["log of function"]
        assert b"API_TOKEN" not in found["log of other"]
        assert b"`grep ****" in found["log of background"]
        for words in (("history", case), ("jobs", "--json"), ("secrets", "--json"), ("failures",), ("alerts",)):
            found[" ".join(words)] = cli(site, *words).encode()
        cli(site, "report", case, "--output", str(tmp_path / "report.html"))
        cli(site, "admin", "export", case, "--to", str(tmp_path / "cases.archive"))
        found["metrics"] = urllib.request.urlopen(site.urls["one"] + "/metrics").read()
        client.close()
    finally:
        site.close()
    found |= {f"trace {number}": body for number, body in enumerate(Collector.bodies)}
    assert Collector.bodies, "traces were sent"
    assert list(data.rglob("settings.ini")), "the folder of a failed attempt is kept"
    for path in tmp_path.rglob("*"):
        if path.is_file():
            found[str(path.relative_to(tmp_path))] = path.read_bytes()
    assert any("store.db" in name for name in found) and "report.html" in found and "cases.archive" in found
    searched = [each for name, content in found.items() for each in contents(name, content)]
    leaks = sorted(
        {name for name, content in searched for value in (FIRST, SECOND) for form in forms(value) if form in content}
    )
    assert not leaks
    assert not list(data.rglob("token.txt")), "files with secrets go when the job has ended"


def test_a_job_whose_secret_is_missing_is_not_started(tmp_path: Path) -> None:  # DU-6
    site = Site(tmp_path, "")
    try:
        site.urls["one"] = f"http://127.0.0.1:{site.port_of('one')}"
        site.start_alone("one")
        client = SyncClient(site.urls["one"])
        site.until(lambda: client.health().status == "ok", "the server to be there")
        site.pilot("p-one", "one")
        (tmp_path / "f.yaml").write_text(
            f"name: f\njobs: {{a: {{run: 'echo ran >> {tmp_path}/lines', secrets: [api-token]}}}}\n"
        )
        client.deploy(load(tmp_path / "f.yaml"))
        case = client.start("f", {}).id
        site.until(lambda: client.case(case).status in CASE_END_STATES, "the end of the case")
        told = client.why(f"{case}:a").sentence
        assert "there is no secret api-token; an administrator sets it with mendflow secrets set api-token" in told
        assert site.lines() == []
        client.close()
    except RequestError as error:
        raise AssertionError(site.log()) from error
    finally:
        site.close()


def cli(site: Site, *words: str, given: str = "") -> str:
    done = subprocess.run(
        [sys.executable, "-m", "mendflow", *words, "--server", site.urls["one"]],
        input=given,
        capture_output=True,
        text=True,
        cwd=site.folder,
    )
    assert done.returncode == 0, f"{words}: {done.stdout} {done.stderr}"
    return done.stdout + done.stderr
