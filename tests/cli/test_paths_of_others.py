"""The paths that somebody else has told for a case are neither read nor written on the caller's machine."""  # SE-4

import hashlib
import json
import urllib.request
from typing import Any

import pytest

from tests.cli.conftest import Shell

FLOW = """\
name: copies
inputs: {doc: {type: file}}
variables: {done: 0}
steps: [{set: {done: 1}}]
outputs: {authorized_keys: "${{ inputs.doc }}"}
"""
BASHRC = "# ann's own\n"


class Operator:
    """Somebody with a token, who starts cases that say what he likes."""

    def __init__(self, url: str, token: str) -> None:
        self._url = url
        self._token = token

    def ask(self, method: str, path: str, body: bytes | None = None) -> bytes:
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        asked = urllib.request.Request(f"{self._url}/api/v1{path}", body, headers, method=method)
        with urllib.request.urlopen(asked) as answer:
            content: bytes = answer.read()
        return content

    def start(self, content: str, origin: dict[str, Any]) -> str:
        digest = hashlib.sha256(content.encode()).hexdigest()
        self.ask("PUT", f"/files/{digest}", content.encode())
        given = {"doc": {"$file": digest, "bytes": len(content), "name": "authorized_keys"}}
        body = json.dumps({"flow": "copies", "inputs": given, "origin": origin}).encode()
        case: str = json.loads(self.ask("POST", "/cases", body))["id"]
        return case


@pytest.fixture
def home(shell: Shell) -> Shell:
    """Ann's folder: a server of hers without tokens, a flow, and what others should neither read nor change."""
    shell.write("copies.yaml", FLOW)
    shell.write("id", "ann's secret\n")
    shell.write(".bashrc", BASHRC)
    shell.start("serve", "--port", "0")
    shell.until((shell.folder / ".mendflow" / "server.json").exists)
    shell.ok("flows", "deploy", "copies.yaml")
    return shell


@pytest.fixture
def operator(home: Shell) -> Operator:
    token = home.ok("admin", "tokens", "create", "eve", "--project", "default:operator").strip().splitlines()[-1]
    url = json.loads((home.folder / ".mendflow" / "server.json").read_text())["url"]
    return Operator(url, token)


def test_outputs_and_reports_go_nowhere_that_somebody_else_has_named(home: Shell, operator: Operator) -> None:
    ssh, bashrc = home.folder / ".ssh", home.folder / ".bashrc"
    case = operator.start("eve's key", {"output_dir": str(ssh), "report": str(bashrc)})
    assert f"outputs/{case}/authorized_keys" in home.ok("watch", case, "--quiet")
    assert not ssh.exists()
    again = home.ok("rerun", case, "--wait", "--quiet")
    assert "outputs/copies-" in again and "report: .mendflow/reports/copies-" in again
    newest = home.json("cases")[0]
    assert (newest["owner"] != "eve", newest["origin"]) == (True, None), "nor are they passed on"
    assert not ssh.exists() and bashrc.read_text() == BASHRC


def test_no_input_is_taken_from_where_somebody_else_has_named(home: Shell, operator: Operator) -> None:
    case = operator.start("harmless", {"inputs": {"doc": str(home.folder / "id")}})
    told = home("rerun", case, "--no-cache")
    assert told.returncode == 0 and "it is taken anew" not in told.stderr
    assert f"eve said where the files of {case} came from: they are taken as they were" in " ".join(told.stderr.split())
    secret = hashlib.sha256(b"ann's secret\n").hexdigest()
    assert secret not in json.dumps(home.json("cases"))
    own = home.json("start", "copies", "--input", "doc=.bashrc")["id"]
    home.write("id", "more\n")
    home.write(".bashrc", "# other\n")
    assert f"input doc has changed since {own}" in " ".join(home("rerun", own).stderr.split()), "of her own it is"


def test_what_somebody_wanted_himself_stays(home: Shell) -> None:
    told = home.ok("start", "copies.yaml", "--input", "doc=id", "--wait", "--quiet", "--output-dir", "results")
    case = home.json("cases")[0]["id"]
    assert "authorized_keys: results/id" in told
    assert "results/id" in home.ok("watch", case, "--quiet")
    again = home.ok("rerun", case, "--wait", "--quiet")
    assert "results/id" in again and len(home.json("cases")) == 2


def test_a_report_takes_the_place_of_nothing_but_a_report(home: Shell) -> None:
    start = ("start", "copies.yaml", "--input", "doc=id", "--wait", "--quiet", "--report")
    refused = home(*start, ".bashrc")
    assert refused.returncode and "this file is no report of mendflow, and stays as it is" in " ".join(
        refused.stderr.split()
    )
    assert not home.json("cases") and (home.folder / ".bashrc").read_text() == BASHRC
    home.write("empty.html", "")
    for name in ("end.html", "end.html", "empty.html"):
        home.ok(*start, name)
        assert (home.folder / name).read_text().startswith("<!DOCTYPE html>")
    home.write("end.html", "what ann made of it\n")
    assert home("report", "last", "--output", "end.html").returncode
    kept = home("rerun", home.json("cases")[1]["id"], "--wait", "--quiet")
    assert kept.returncode and "no report of mendflow" in kept.stderr + kept.stdout
    assert (home.folder / "end.html").read_text() == "what ann made of it\n"
