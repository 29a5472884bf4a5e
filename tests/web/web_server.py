"""A real server with pilots of its own, for pages to look at; it can be killed and started again."""

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mendflow.client import SyncClient
from mendflow.core.model.ids import CaseId
from mendflow.formats import load
from tests.patience import PATIENCE_S
from tests.servers.processes import free_port

BOSS = "the-token-of-the-administrator"


class WebServer:
    """Without a token it answers the account that runs the tests. With one it answers nobody without, and the token is
    its administrator's."""

    def __init__(self, folder: Path, *, token: str = "", domain: str = "", options: Sequence[str] = ()) -> None:
        """With options of its own, it has no pilot."""
        self.folder = folder
        self._options = [*(options or ("--jobs", "3")), *(("--domain", domain) if domain else ())]
        self._token = token
        self._port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self.url = f"http://127.0.0.1:{self._port}"
        self.client = SyncClient(self.url, token=token)

    def start(self) -> None:
        data = self.folder / "data"
        (data / "server.json").unlink(missing_ok=True)
        command = [sys.executable, "-m", "mendflow", "serve", "--port", str(self._port), *self._options]
        with (self.folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                [*command, "--data-dir", str(data)], stdout=log, stderr=log, cwd=self.folder, env=self._environment()
            )
        give_up = time.monotonic() + PATIENCE_S
        while not self._is_up(data / "server.json"):
            assert self._process.poll() is None, (self.folder / "server.log").read_text()
            assert time.monotonic() < give_up, "the server did not start"
            time.sleep(0.1)

    def _is_up(self, told: Path) -> bool:
        return told.exists() and bool(json.loads(told.read_text() or "{}").get("url"))

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        self.client.close()
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                self._process.kill()

    def deploy(self, name: str, text: str) -> None:
        """Give the server a flow, written as in a flow file."""
        path = self.folder / f"{name}.yaml"
        path.write_text(text)
        self.client.deploy(load(path))

    def _environment(self) -> dict[str, str]:
        token = {"MENDFLOW_TOKEN": self._token} if self._token else {}
        return {**os.environ, "MENDFLOW_SERVER": self.url, **token}

    def begin(self, flow: str, **inputs: Any) -> CaseId:
        return self.client.start(flow, inputs).id

    def ended(self, flow: str, **inputs: Any) -> CaseId:
        """A case of the flow that is over."""
        return self.client.wait(self.begin(flow, **inputs), timeout_s=PATIENCE_S).id

    def reader(self, name: str) -> dict[str, str]:
        """The token, and its id, of somebody who may only look."""
        made = self.ask("POST", "/tokens", {"name": name, "roles": ["reader"]})
        return {"token": made["token"], "id": made["view"]["id"]}

    def came_to(self, case: str, status: str) -> None:
        """Wait until the case has this status."""
        self.wait_for(f"/cases/{case}", lambda view: view["status"] == status)

    def item_came_to(self, case: str, item: str, state: str) -> None:
        self.wait_for(f"/cases/{case}/items/{item}", lambda view: view["state"] == state)

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """What the server answers, as JSON."""
        request = urllib.request.Request(
            f"{self.url}/api/v1{path}",
            data=None if body is None else json.dumps(body).encode(),
            method=method,
            headers={
                "Content-Type": "application/json",
                **({"Authorization": f"Bearer {self._token}"} if self._token else {}),
            },
        )
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as response:
            text = response.read()
        return json.loads(text) if text else None

    def wait_for(self, path: str, good: Callable[[Any], bool]) -> Any:
        """What the server says, once it is good."""
        until = time.monotonic() + PATIENCE_S
        while not good(said := self.ask("GET", path)):
            assert time.monotonic() < until, said
            time.sleep(0.2)
        return said


@contextmanager
def serving(folder: Path, *, token: str = "", domain: str = "", options: Sequence[str] = ()) -> Iterator[WebServer]:
    """A server of its own for a test."""
    server = WebServer(folder, token=token, domain=domain, options=options)
    server.start()
    try:
        yield server
    finally:
        server.stop()
