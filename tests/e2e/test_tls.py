"""A server and a pilot as real processes speak mutual TLS, and jobs run; a certificate is replaced on SIGHUP. SE-5"""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mendflow.client import SyncClient
from mendflow.core.model.views import CaseQuery
from mendflow.formats import load
from mendflow.tls import ClientTls, pin_of_file
from tests.e2e.site import Site
from tests.servers.certificates import Authority

FLOW = """
name: greet
jobs:
  hello:
    for-each: {i: {from: 1, to: 5}}
    run: seq 100000 > numbers
    files: {numbers: numbers}
"""


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    site = Site(tmp_path, "")
    try:
        yield site
    finally:
        site.close()


def test_a_pilot_over_mutual_tls_runs_jobs_while_the_certificate_is_replaced(site: Site) -> None:  # SE-5
    servers, clients = Authority(site.folder / "servers", "servers"), Authority(site.folder / "clients", "clients")
    first, second = servers.sign("first"), servers.sign("second")
    used = (site.folder / "used.pem", site.folder / "used.key")
    for source, target in zip(first, used, strict=True):
        shutil.copy(source, target)
    pilot = list(map(str, clients.sign("pilot")))
    shows = ["--tls-cert", str(used[0]), "--tls-key", str(used[1]), "--tls-client-ca", str(clients.cert)]
    own = ["--tls-client-cert", pilot[0], "--tls-client-key", pilot[1]]
    site.start_alone("one", *shows, *own, "--jobs", "1")
    url = f"https://127.0.0.1:{site.port_of('one')}"
    trust = ClientTls(ca=str(servers.cert), cert=pilot[0], key=pilot[1])
    with SyncClient(url, tls=trust) as client:
        site.until(lambda: client.health().status == "ok", "the server")
        site.until(lambda: len(client.pilots()) == 1, "the pilot that the server starts")
        words = ["pilot", "--server", url, "--work", str(site.folder / "p"), "--jobs", "2"]
        site._start("p", *words, "--tls-ca", str(servers.cert), *own)
        site.until(lambda: len(client.pilots()) == 2, "the pilot with a certificate")
        site._start("q", "pilot", "--server", url, "--work", str(site.folder / "q"), "--tls-ca", str(servers.cert))
        site.until(lambda: "wants a certificate" in site.log(), "the sentence for the one without")
        (site.folder / "greet.yaml").write_text(FLOW)
        client.deploy(load(site.folder / "greet.yaml"))
        client.start("greet", {})
        for source, target in zip(second, used, strict=True):
            shutil.copy(source, target)
        os.kill(site.processes["one"].pid, signal.SIGHUP)
        client.start("greet", {})
        site.until(lambda: len(client.find_cases(CaseQuery(status="completed")).rows) == 2, "the cases")
        assert len(client.pilots()) == 2
        pinned = ClientTls(cert=pilot[0], key=pilot[1], pin=pin_of_file(second[0]))
        with SyncClient(url, tls=pinned) as other:
            site.until(lambda: other.health().status == "ok", "the new certificate")
    environment = {**os.environ, "MENDFLOW_TLS_CERT": pilot[0], "MENDFLOW_TLS_KEY": pilot[1]}
    words = [sys.executable, "-m", "mendflow", "cases", "--data-dir", str(site.folder / "one")]
    listed = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert listed.stdout.count("completed") == 2, listed.stderr
