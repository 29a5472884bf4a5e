"""Runs commands of a batch system, with limits on time and output.

They get little of the server's environment, because many batch systems pass a command's environment on to the jobs: a
server's token or a store's password must not get there."""

import asyncio
import os
import shutil
import signal
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

import msgspec

from mendflow.core.model.sites import BatchSystemUnavailable, Site

OUTPUT_BYTES_MAX = 32 << 20
GOODBYE_S = 5.0
INHERITED_VARIABLES = frozenset(
    {
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "SHELL",
        "LANG",
        "LANGUAGE",
        "TZ",
        "TMPDIR",
        "LD_LIBRARY_PATH",
        "PYTHONPATH",
        "VIRTUAL_ENV",
        "KRB5CCNAME",
        "X509_USER_PROXY",
        "BEARER_TOKEN_FILE",
        "SSL_CERT_FILE",
        "SLURM_CONF",
        "SLURM_CLUSTERS",
        "LSF_ENVDIR",
        "LSF_SERVERDIR",
        "LSF_LIBDIR",
        "LSF_BINDIR",
        "PBS_CONF_FILE",
        "PBS_SERVER",
        "PBS_DEFAULT",
        "CONDOR_CONFIG",
        "SGE_ROOT",
        "SGE_CELL",
        "SGE_QMASTER_PORT",
        "SGE_EXECD_PORT",
    }
)
SECRET = "env:"


class CommandResult(msgspec.Struct, frozen=True):
    """The result of a command. `code` is None if it was given up."""

    code: int | None
    out: str
    err: str

    @property
    def last_line(self) -> str:
        lines = [line for line in (self.err or self.out).splitlines() if line.strip()]
        return lines[-1].strip()[:500] if lines else "it said nothing"


def environment_for(site: Site) -> dict[str, str]:
    """The environment of commands for this site: little of ours, and what its settings give."""
    kept = {name: text for name, text in os.environ.items() if name in INHERITED_VARIABLES or name.startswith("LC_")}
    for name, text in site.batch.environment.items():
        kept[name] = os.environ.get(text.removeprefix(SECRET), "") if text.startswith(SECRET) else text
    if site.batch.commands:
        kept["PATH"] = f"{site.batch.commands}:{kept.get('PATH', os.defpath)}"
    return kept


def unset_variables(site: Site) -> list[str]:
    """Variables that its settings take from our environment, and that are not set."""
    named = [text.removeprefix(SECRET) for text in site.batch.environment.values() if text.startswith(SECRET)]
    return sorted(name for name in set(named) if name not in os.environ)


def missing_commands(site: Site, commands: Iterable[str]) -> list[str]:
    """Which of these are not found where the site's commands are looked up."""
    path = environment_for(site).get("PATH", os.defpath)
    return [command for command in commands if shutil.which(command, path=path) is None]


async def run_command(site: Site, words: Sequence[str], *, given: bytes = b"", timeout_ms: int = 0) -> CommandResult:
    """Run a command. One that takes too long, or prints too much, is killed with all its processes; its output so far
    is returned."""
    environment = environment_for(site)
    try:
        process = await asyncio.create_subprocess_exec(
            *words,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=environment,
            start_new_session=True,
        )
    except OSError as error:
        raise BatchSystemUnavailable(f"{words[0]} cannot be run: {error.strerror}") from error
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    out, err = _BoundedOutput(process.stdout, process.pid), _BoundedOutput(process.stderr, process.pid)
    code: int | None = None
    try:
        async with asyncio.timeout((timeout_ms or site.batch.timeout_ms) / 1000):
            await asyncio.gather(_give(process.stdin, given), out.hear(), err.hear())
            code = await process.wait()
    except TimeoutError:
        pass
    finally:
        await _end(process, out, err)
    return CommandResult(None if out.too_much or err.too_much else code, out.text, err.text)


async def output_of(site: Site, words: Sequence[str], *, well: Mapping[int, str] | None = None) -> str:
    """The output of a query. Raises BatchSystemUnavailable unless it succeeded: with exit code 0, or another one that
    means success together with a certain text."""
    result = await run_command(site, words)
    if result.code is None:
        raise BatchSystemUnavailable(
            f"{words[0]} did not answer within {site.batch.timeout_ms} ms, or printed too much"
        )
    expected = (well or {}).get(result.code)
    if result.code != 0 and (expected is None or expected not in result.out + result.err):
        raise BatchSystemUnavailable(f"{words[0]} ended with {result.code}: {result.last_line}")
    return result.out


class _BoundedOutput:
    """The output of a process, up to a limit; beyond it the process is killed."""

    def __init__(self, source: asyncio.StreamReader, pid: int) -> None:
        self._source = source
        self._pid = pid
        self._parts: list[bytes] = []
        self._bytes = 0

    @property
    def too_much(self) -> bool:
        return self._bytes > OUTPUT_BYTES_MAX

    async def hear(self) -> None:
        """Read to the end: the end of a process is known only when all its output was read."""
        while part := await self._source.read(1 << 16):
            if self.too_much:
                continue
            self._parts.append(part)
            self._bytes += len(part)
            if self.too_much:
                _kill(self._pid)

    @property
    def text(self) -> str:
        return b"".join(self._parts).decode(errors="replace")


async def _give(target: asyncio.StreamWriter, given: bytes) -> None:
    """A command that does not read its input may be right. When it has ended already, the event loop says so by a
    RuntimeError."""
    with suppress(ConnectionError, RuntimeError):
        target.write(given)
        await target.drain()
    with suppress(RuntimeError):
        target.close()


async def _end(process: asyncio.subprocess.Process, out: _BoundedOutput, err: _BoundedOutput) -> None:
    """Kill it with all its processes. One that left its process group and keeps the output open is not waited for."""
    _kill(process.pid)
    with suppress(TimeoutError):
        async with asyncio.timeout(GOODBYE_S):
            await asyncio.gather(out.hear(), err.hear())
            await process.wait()


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
