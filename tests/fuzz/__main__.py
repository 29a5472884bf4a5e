"""Schemathesis over the whole API of a real server, with every check: `python -m tests.fuzz`.

An administrator asks for everything there is, and then somebody who may only look. Nothing may be answered with an
error of the server or with a status that is not described; no answer may differ from its schema; what fits the
description is not refused for its shape, and what does not fit is refused."""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from mendflow.client import SyncClient
from tests.fuzz.furnish import furnish
from tests.fuzz.schemathesis_run import FuzzResult, Json, fuzz
from tests.patience import PATIENCE_S
from tests.servers.processes import dying_with_us, end, launch

REACHED_LEAST: Final = 0.6
"""The share of the operations that must do, at least once, what the administrator asks for: if hardly any request found
something alive, nothing would be proved."""


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="mendflow-fuzz-") as made:
        return _fuzzed(Path(made))


def _fuzzed(folder: Path) -> int:
    tokens = {name: _token(folder, name, role) for name, role in (("root", "admin"), ("looker", "reader"))}
    with _served(folder) as url:
        described: Json = json.load(urllib.request.urlopen(f"{url}/api/v1/openapi.json", timeout=PATIENCE_S))
        operations = sum(len(path) for path in described["paths"].values())
        furnished = asyncio.run(furnish(url, tokens["root"]))
        problems: list[str] = []
        for who, phases, examples in (("looker", "fuzzing", 2), ("root", "coverage,fuzzing", 4)):
            began = time.monotonic()
            result = fuzz(
                url, tokens[who], furnished, folder / who, phases=phases, examples=examples, description=described
            )
            print(f"told: {who}: {_summary(result, operations)} in {time.monotonic() - began:.0f} s", flush=True)
            problems += _problems(result, who, operations)
        with SyncClient(url, token=tokens["root"]) as client:
            assert client.health().status == "ok"
    told = (folder / "server.log").read_text(errors="replace")
    problems += [line for line in told.splitlines() if "internal error" in line]
    print("\n".join(problems))
    return 1 if problems else 0


def _summary(result: FuzzResult, operations: int) -> str:
    counts = ", ".join(f"{number} times {status}" for status, number in result.by_status().items())
    return f"{result.requests} requests, {len(result.reached)} of {operations} operations done; {counts}"


def _problems(result: FuzzResult, who: str, operations: int) -> list[str]:
    found = [] if result.code == 0 else [f"Schemathesis, as {who}, ended with {result.code}:\n{result.said}"]
    found += [
        f"{operation}: status {status}, {number} times"
        for (operation, status), number in result.answers.items()
        if status >= 500
    ]
    if who == "root" and len(result.reached) < REACHED_LEAST * operations:
        found.append(f"only {len(result.reached)} of {operations} operations were done")
    return found


def _token(folder: Path, name: str, role: str) -> str:
    command = [sys.executable, "-m", "mendflow", "admin", "tokens", "line", name, "--role", role]
    made = subprocess.run([*command, "--append", str(folder / "tokens")], capture_output=True, text=True, check=True)
    return made.stdout.strip()


@contextmanager
def _served(folder: Path) -> Iterator[str]:
    """A server that runs no jobs: what is drawn by chance is no command that should run here."""
    words = ["serve", "--data-dir", str(folder / "data"), "--port", "0", "--tokens", str(folder / "tokens")]
    command = [*dying_with_us(), sys.executable, "-m", "mendflow", *words, "--requests-per-second", "0"]
    log, known = folder / "server.log", folder / "data" / "server.json"
    server = launch(command, log=log, cwd=folder, env=dict(os.environ))
    try:
        give_up_at = time.monotonic() + PATIENCE_S
        while not known.exists():
            assert time.monotonic() < give_up_at and server.poll() is None, log.read_text()
            time.sleep(0.1)
        yield json.loads(known.read_text())["url"]
    finally:
        end(server, kill=False)


if __name__ == "__main__":
    sys.exit(main())
