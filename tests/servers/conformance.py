"""The BPEL conformance suite, played against a fresh server over SOAP: `python -m tests.servers.conformance`.

The suite is not part of the project: it lies beside it, or its stage is left out. Whatever fails must be explained, by
its name, on the pages about BPEL."""

import json
import re
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from tests.servers.processes import dying_with_us, end, free_port, launch
from tools.environment import ROOT

SUITE: Final = ROOT.parent / "shared" / "conformance" / "bpel"
EXPLAINED: Final = "docs/reference/bpel*.md"
PASSING_LEAST: Final = 0.95
START_S: Final = 30


def lacking() -> str:
    """What is missing for the suite to be played here; empty if nothing is."""
    return "" if (SUITE / "replay.py").is_file() else f"the conformance suite at {SUITE}"


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
        deploy = f"{sys.executable} -m mendflow flows deploy {{file}} --server http://127.0.0.1:{port}"
        play = [sys.executable, str(SUITE / "replay.py"), str(SUITE / "betsy"), "--deploy", deploy]
        subprocess.run([*play, "--report", str(report), *only], check=False)
    finally:
        end(server, kill=False)
    found: dict[str, list[str]] = json.loads(report.read_text())
    return found


def await_port(port: int) -> None:
    """Until somebody listens there."""
    give_up_at = time.monotonic() + START_S
    while True:
        with socket.socket() as line:
            if line.connect_ex(("127.0.0.1", port)) == 0:
                return
        if time.monotonic() > give_up_at:
            raise TimeoutError(f"nobody listens on port {port} after {START_S} s")
        time.sleep(0.1)


if __name__ == "__main__":
    sys.exit(main())
