"""Starts a module of ours as a process beside the server, which talks to it by its input and output.

It gets only these variables of the server's environment, where there may be passwords, and is killed by its server
alone: a signal to the server's terminal does not reach it."""

import asyncio
import os
import sys
from typing import Final

PASSED_VARIABLES: Final = ("PATH", "PYTHONPATH", "VIRTUAL_ENV", "LD_LIBRARY_PATH", "SYSTEMROOT")
BUFFER_BYTES: Final = 1 << 16


async def start_module(module: str, *, is_heard: bool, buffer_bytes: int = BUFFER_BYTES) -> asyncio.subprocess.Process:
    """Start it. What it writes to its standard error goes to the server's if it `is_heard`, else nowhere."""
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",
        "-m",
        module,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=None if is_heard else asyncio.subprocess.DEVNULL,
        env={name: os.environ[name] for name in PASSED_VARIABLES if name in os.environ},
        start_new_session=True,
        limit=buffer_bytes,
    )
