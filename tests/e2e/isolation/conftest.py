"""A server for several people and a pilot that keeps their jobs apart, as real processes."""

import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from mendflow.client import SyncClient
from mendflow.core.model.errors import RequestError
from mendflow.core.model.views import CASE_END_STATES
from mendflow.formats import load
from mendflow.server.access import new_token
from tests.marked import below
from tests.patience import PATIENCE_S
from tests.servers import isolation as servers
from tests.servers.processes import free_port

collect_ignore_glob = ["test_*.py"] if servers.lacking() else []
HERE = Path(__file__).parent
PYTHON = "/usr/bin/python3"
"""One that every account may start; the tests' own may lie in somebody's home."""

PACKAGES = os.pathsep.join(
    [str(HERE.parents[2] / "src"), *(each for each in sys.path if each.endswith("site-packages"))]
)
OWNER, INTRUDER = "daemon", "games"
"""People with tokens; every Debian has accounts of these names."""

NOBODY = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "--"]
"""Starts a program as somebody without rights; it may start sandboxes, but no job under another account."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in below(items, HERE):
        item.add_marker(pytest.mark.isolation)


class Installation:
    """`folder` is one that other accounts may pass through. The server's and the pilot's variables have secrets that no
    job may see."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data, self.work, self.token_file = folder / "data", folder / "pilot", folder / "tokens"
        self.password = f"pg-{secrets.token_hex(8)}"
        self.tokens: dict[str, str] = {}
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self._log = (folder / "log").open("ab")
        self._clients: dict[str, SyncClient] = {}
        lines = []
        for name, role in (("root-of-all", "admin"), (OWNER, "user"), (INTRUDER, "user"), ("farm", "pilot")):
            self.tokens[name], line = new_token(name, [role])
            lines.append(line)
        self.token_file.write_text("\n".join(lines) + "\n")
        self.token_file.chmod(0o600)

    def start(self, name: str, *words: str, before: list[str] | None = None, **environment: str) -> None:
        self.processes[name] = subprocess.Popen(
            [*(before or []), PYTHON, "-P", "-m", "mendflow", *words],
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            cwd=self.folder,
            env={
                **os.environ,
                "PGPASSWORD": self.password,
                "VISIBLE_TO_ALL": "yes",
                "PYTHONPATH": PACKAGES,
                **environment,
            },
        )

    def serve(self, *words: str, before: list[str] | None = None) -> None:
        place = ["--data-dir", str(self.data), "--port", str(self.port), "--tokens", str(self.token_file)]
        more = {"MENDFLOW_TOKEN": self.tokens["root-of-all"]}
        self.start("server", "serve", *place, "--files-root", str(self.folder), *words, before=before, **more)
        self.until(lambda: self.client(OWNER).health().status == "ok", "the server to answer")

    def pilot(self, *words: str, before: list[str] | None = None) -> None:
        place = ["--server", self.url, "--work", str(self.work), "--jobs", "3", "--cpus", "3"]
        self.start("pilot", "pilot", *place, *words, before=before, MENDFLOW_TOKEN=self.tokens["farm"])
        self.until(lambda: bool(self.client("root-of-all").pilots()), "the pilot to register")

    def client(self, name: str) -> SyncClient:
        if name not in self._clients:
            self._clients[name] = SyncClient(self.url, self.tokens[name])
        return self._clients[name]

    def begin(self, who: str, name: str, text: str, **files: str) -> str:
        """Start a case of a flow in a folder of its own; returns its id."""
        place = self.folder / f"flows-{name}"
        place.mkdir(mode=0o755)
        place.chmod(0o755)
        for file, content in files.items():
            (place / f"{file}.py").write_text(content)
            (place / f"{file}.py").chmod(0o644)
        (place / "flow.yaml").write_text(text)
        self.client(who).deploy(load(place / "flow.yaml"))
        return self.client(who).start(name, {}).id

    def end_of(self, who: str, case: str) -> dict[str, object]:
        """Wait until the case has ended; what its jobs have given, by job."""
        client = self.client(who)
        self.until(lambda: client.case(case).status in CASE_END_STATES, f"the end of {case}")
        items = client.items(case)
        assert client.case(case).status == "completed", [client.why(f"{case}:{item.item}").sentence for item in items]
        return {str(item.item): msgspec.to_builtins(item.outputs) for item in items}

    def until(self, holds: Callable[[], object], what: str) -> None:
        end = time.monotonic() + PATIENCE_S
        while True:
            try:
                if holds():
                    return
            except RequestError:
                pass
            ended = [name for name, process in self.processes.items() if process.poll() is not None]
            assert not ended, f"{ended} ended while we waited for {what}: {self.log()}"
            assert time.monotonic() < end, f"waited {PATIENCE_S:.0f} s for {what}: {self.log()}"
            time.sleep(0.05)

    def log(self) -> str:
        return (self.folder / "log").read_text()[-6000:]

    def said(self) -> str:
        """The log in one line, as it may be wrapped."""
        return " ".join(self.log().replace("│", " ").split())

    def close(self) -> None:
        for client in self._clients.values():
            client.close()
        for process in reversed(self.processes.values()):
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._log.close()


@pytest.fixture
def installation() -> Iterator[Installation]:
    folder = Path(tempfile.mkdtemp(prefix="mendflow-isolation-", dir="/tmp"))
    folder.chmod(0o711)
    made = Installation(folder)
    yield made
    made.close()
    shutil.rmtree(folder, ignore_errors=True)
