"""Modules of ours as processes beside the server, which talks to them by their input and output.

Such a process gets only these variables of the server's environment, where there may be passwords, and is killed by its
server alone: a signal to the server's terminal does not reach it. It gives way to everything else on the machine, from
its first moment on: it loads much before it does anything.

One that does tasks does one after the other, which would keep everybody else waiting within the server. Its memory is
limited, and it ends with its input, as it does when the server has ended. A task and its result go over the pipe as
msgpack, each behind its length; both ends of the pipe are here."""

import asyncio
import os
import resource
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Final, Generic, TypeVar

import msgspec

from mendflow.process_priority import give_way

PASSED_VARIABLES: Final = ("PATH", "PYTHONPATH", "VIRTUAL_ENV", "LD_LIBRARY_PATH", "SYSTEMROOT")
STREAM_BYTES: Final = 1 << 16
TASK_STREAM_BYTES: Final = 1 << 24
LENGTH_BYTES: Final = 8
NICENESS: Final = 10
SESSION_TRIES: Final = 20
BETWEEN_SESSIONS_S: Final = 0.15
MEMORY_BYTES_MAX: Final = 4 << 30

ENDED: Final = (OSError, asyncio.IncompleteReadError)
"""What `TaskProcess.do` raises when the process has ended."""

Task = TypeVar("Task")
Result = TypeVar("Result")


async def start_module(module: str, *, is_heard: bool, buffer_bytes: int = STREAM_BYTES) -> asyncio.subprocess.Process:
    """Start it. What it writes to its standard error goes to the server's if it `is_heard`, else nowhere."""
    process = await asyncio.create_subprocess_exec(
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
    give_way(process.pid, NICENESS)
    _let_session_give_way(process.pid)
    return process


def _let_session_give_way(pid: int, tries: int = SESSION_TRIES) -> None:
    """Linux shares the processors evenly between sessions and counts niceness only within one; such a process has a
    session of its own, whose niceness is in a file. There is none where sessions do not matter. Who is not root may
    write one such file in a tenth of a second."""
    try:
        Path(f"/proc/{pid}/autogroup").write_text(str(NICENESS))
    except BlockingIOError:
        if tries > 1:
            asyncio.get_running_loop().call_later(BETWEEN_SESSIONS_S, _let_session_give_way, pid, tries - 1)
    except OSError:
        return


class TaskProcess(Generic[Task, Result]):
    """The server's end: starts the process, and starts it anew when it has ended. One task at a time."""

    def __init__(self, module: str, result: type[Result]) -> None:
        self._module, self._result = module, result
        self._process: asyncio.subprocess.Process | None = None
        self._encode = msgspec.msgpack.Encoder().encode
        self._decoder: msgspec.msgpack.Decoder[Result] | None = None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None else None

    async def start(self) -> bool:
        """Start it unless it runs. Whether it was started now, and so knows of no task before."""
        if self._process is not None and self._process.returncode is None:
            return False
        self._process = await start_module(self._module, is_heard=True, buffer_bytes=TASK_STREAM_BYTES)
        return True

    async def do(self, task: Task) -> Result:
        """Give it a task and wait for the result. Whoever stops waiting has to stop the process too: what it answers
        then would be taken for the answer to the next task."""
        assert self._process is not None, "start() comes first"
        target, source = self._process.stdin, self._process.stdout
        assert target is not None and source is not None
        given = self._encode(task)
        target.write(len(given).to_bytes(LENGTH_BYTES, "big"))
        target.write(given)
        await target.drain()
        length = int.from_bytes(await source.readexactly(LENGTH_BYTES), "big")
        found = await source.readexactly(length)
        self._decoder = self._decoder or msgspec.msgpack.Decoder(self._result)
        return self._decoder.decode(found)

    def kill(self) -> None:
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.kill()

    async def stop(self) -> None:
        """Kill it and wait for its end."""
        self.kill()
        process, self._process = self._process, None
        if process is not None:
            await process.wait()


def serve_tasks(task: type[Task], do: Callable[[Task], object]) -> None:
    """The end of the process: its main function."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES_MAX, resource.getrlimit(resource.RLIMIT_AS)[1]))
    _serve(sys.stdin.buffer, sys.stdout.buffer, task, do)


def _serve(source: BinaryIO, target: BinaryIO, task: type[Task], do: Callable[[Task], object]) -> None:
    decode = msgspec.msgpack.Decoder(task).decode
    encode = msgspec.msgpack.Encoder().encode
    while length := source.read(LENGTH_BYTES):
        answer = encode(do(decode(source.read(int.from_bytes(length, "big")))))
        target.write(len(answer).to_bytes(LENGTH_BYTES, "big"))
        target.write(answer)
        target.flush()
