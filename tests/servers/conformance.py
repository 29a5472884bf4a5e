"""The BPEL conformance suite, played against a fresh server over SOAP: `python -m tests.servers.conformance`.

The suite is not part of the project: it lies beside it, or its stage is left out. Whatever fails must be explained, by
its name, on the pages about BPEL."""

import json
import os
import re
import shlex
import socket
import socketserver
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from tests.cli.in_process import run_command
from tests.patience import PATIENCE_S
from tests.servers.bpel_suite import SUITE
from tests.servers.processes import dying_with_us, end, free_port, launch
from tools.environment import ROOT

EXPLAINED: Final = "docs/reference/bpel*.md"
PASSING_LEAST: Final = 0.95


def main() -> int:
    explained = "".join(page.read_text(encoding="utf-8") for page in ROOT.glob(EXPLAINED))
    found = played()
    silent = [name for name, problems in found.items() if problems and not named(name, explained)]
    if silent:
        print(f"once more, because nothing says why they should fail: {', '.join(silent)}")
        found |= played("^(" + "|".join(map(re.escape, silent)) + ")$")
    failed = [name for name, problems in found.items() if problems]
    silent = [name for name in failed if name in silent]
    tests, passed = len(found), 1 - len(failed) / len(found)
    print(f"{tests - len(failed)} of {tests} passed ({passed:.1%})")
    for name in silent:
        print(f"{name} failed, and no page about BPEL says why")
    return 1 if silent or passed < PASSING_LEAST else 0


def named(test: str, pages: str) -> bool:
    """Whether a row of a table is about this test, or about it and others."""
    return re.search(rf"^\|[^|]*(?<![\w-]){re.escape(test)}(?![\w-])", pages, re.MULTILINE) is not None


def played(only: str = "") -> dict[str, list[str]]:
    """What went wrong in each test, or in each whose name is of this kind, against a server of their own."""
    with tempfile.TemporaryDirectory(prefix="mendflow-bpel-") as folder:
        return _played(Path(folder), ["--only", only] if only else [])


def _played(folder: Path, only: list[str]) -> dict[str, list[str]]:
    port, report = free_port(), folder / "report.json"
    serve = [*dying_with_us(), sys.executable, "-m", "mendflow", "serve", "--data-dir", str(folder / "data")]
    server = launch([*serve, "--port", str(port)], log=folder / "server.log", cwd=folder)
    try:
        await_port(port)
        with Deployer(folder, f"http://127.0.0.1:{port}") as deployer:
            play = [sys.executable, str(SUITE / "replay.py"), str(SUITE / "betsy"), "--deploy", deployer.command]
            deployer.serve_while(subprocess.Popen([*play, "--report", str(report), *only]))
    finally:
        end(server, kill=False)
    found: dict[str, list[str]] = json.loads(report.read_text())
    return found


ASKING: Final = """
import socket, sys
with socket.socket(socket.AF_UNIX) as line:
    line.connect(sys.argv[1])
    line.sendall(sys.argv[2].encode())
    line.shutdown(socket.SHUT_WR)
    code, _, said = b"".join(iter(lambda: line.recv(65536), b"")).decode().partition(" ")
print(said)
sys.exit(int(code))
"""


class Deployer(socketserver.UnixStreamServer):
    """Does `mendflow flows deploy` in this process, for the suite gives the command of each of its tests to a shell: a
    command that only asks us starts much faster than one that loads mendflow."""

    timeout = 0.2

    def __init__(self, folder: Path, server: str) -> None:
        super().__init__(str(folder / "deployer"), _Asked)
        self._folder, self._server = folder, server
        words = [sys.executable, "-IS", "-c", ASKING, str(folder / "deployer")]
        self.command = f"{shlex.join(words)} {{file}}"

    def deployed(self, file: str) -> tuple[int, str]:
        words = ["flows", "deploy", file, "--server", self._server]
        done = run_command(words, folder=self._folder, environment=dict(os.environ))
        return done.returncode, done.stderr if done.returncode else done.stdout

    def serve_while(self, playing: "subprocess.Popen[bytes]") -> None:
        while playing.poll() is None:
            self.handle_request()


class _Asked(socketserver.StreamRequestHandler):
    server: Deployer

    def handle(self) -> None:
        code, said = self.server.deployed(self.rfile.read().decode())
        self.wfile.write(f"{code} {said}".encode())


def await_port(port: int) -> None:
    """Until somebody listens there."""
    give_up_at = time.monotonic() + PATIENCE_S
    while True:
        with socket.socket() as line:
            if line.connect_ex(("127.0.0.1", port)) == 0:
                return
        if time.monotonic() > give_up_at:
            raise TimeoutError(f"nobody listens on port {port} after {PATIENCE_S:.0f} s")
        time.sleep(0.1)


if __name__ == "__main__":
    sys.exit(main())
