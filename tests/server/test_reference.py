"""The requests that the reference shows are made, in its order, as a reader would make them.

Where the tests run there may be no curl, so a stand-in that knows the few options of that page takes its place."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from mendflow.server.runner import HttpServer
from tests.shape.pages import blocks, steps

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "api.md"

CURL = f"""#!{sys.executable}
import argparse, sys, urllib.request
known = argparse.ArgumentParser()
known.add_argument("-X", default="")
known.add_argument("-H", action="append", default=[])
known.add_argument("-d", default=None)
known.add_argument("-T", default="")
for flag in "sfN":
    known.add_argument("-" + flag, action="store_true")
known.add_argument("url")
given = known.parse_args()
body = open(given.T, "rb").read() if given.T else given.d.encode() if given.d is not None else None
method = given.X or ("PUT" if given.T else "POST" if body is not None else "GET")
headers = dict(header.split(": ", 1) for header in given.H)
request = urllib.request.Request(given.url, data=body, method=method, headers=headers)
sys.stdout.buffer.write(urllib.request.build_opener(urllib.request.ProxyHandler({{}})).open(request).read())
"""


def _commands() -> str:
    shown = [block for block in blocks(PAGE.read_text()) if block.language == "console" and block.norun]
    commands = [step.command for block in shown for step in steps(block)]
    assert sum(command.startswith("curl ") for command in commands) > 15
    return "\n".join(["set -ex", *(f"{command}; echo" for command in commands)])


@pytest.mark.full
async def test_every_request_of_the_reference_is_answered(served: HttpServer, tmp_path: Path) -> None:
    stand_in = tmp_path / "curl"
    stand_in.write_text(CURL)
    stand_in.chmod(0o755)
    environ = {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}", "MENDFLOW_SERVER": served.url}
    bash = await asyncio.create_subprocess_exec(
        *("bash", "-c", _commands()),
        cwd=tmp_path,
        env=environ,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    printed, _ = await bash.communicate()
    assert bash.returncode == 0, printed.decode()
    assert b"event: end" in printed
