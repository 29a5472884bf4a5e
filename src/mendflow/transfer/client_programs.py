"""Places that are reached through a program of this machine: `scp` by OpenSSH's `sftp`, which speaks what scp speaks
since OpenSSH 9; `gsiftp` by `globus-url-copy`, which can only fetch whole files.

A password never stands on a command line: ssh asks a helper for it, which prints what is in its environment. Who the
other machine is, and which key opens it, is the business of the user's ssh configuration."""

import os
import re
import shutil
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import unquote, urlsplit

from mendflow.core.data.protocols import CLIENT_PROGRAMS
from mendflow.transfer.errors import BadFileUrl, CannotResume, FileMissing, TransferFailed

PACKAGES: Final = {"scp": "OpenSSH's client", "gsiftp": "the Globus Toolkit's globus-url-copy"}
POLL_S: Final = 0.1
OPENED_FILES: Final = "/dev/fd/"
"""Before the number of a file that this process has open."""

CONNECT_S: Final = 10
ALIVE: Final = ("-oServerAliveInterval=15", "-oServerAliveCountMax=4")
"""A connection on which nothing is heard for a minute is given up."""

ASKED: Final = "MENDFLOW_ASKED_BY_SSH"
LINE: Final = re.compile(r"^(\S)\S+\s+\S+\s+\S+\s+\S+\s+(\d+)\s+(\w+\s+\w+\s+[\d:]+)\s(.*)$")
MISSING: Final = re.compile(r"not found|no such file", re.IGNORECASE)
LASTING: Final = re.compile(
    r"permission denied|host key verification failed|could not resolve|not a regular file|is a directory"
    r"|no such identity|bad configuration|login incorrect|authentication",
    re.IGNORECASE,
)
OnGrowth = Callable[[int], None]


class RemoteProgram(Protocol):
    """What can be done with files through a program."""

    def info(self, path: str) -> dict[str, object]: ...
    def get(self, path: str, descriptor: int, offset: int, grown: OnGrowth, *, timeout_s: float) -> None: ...


def missing_program(protocol: str) -> str:
    """Why a protocol cannot be spoken on this machine; empty if it can."""
    program = CLIENT_PROGRAMS.get(protocol)
    if program is None or shutil.which(program) is not None:
        return ""
    return (
        f"{protocol}:// cannot be spoken here: the program {program} is not on the PATH; install {PACKAGES[protocol]}"
    )


def open_program(protocol: str, options: Mapping[str, object], timeout_ms: int) -> "OpenSshFiles | GlobusFiles":
    if why := missing_program(protocol):
        raise BadFileUrl(why)
    known = {"host", "port", "username", "password", "identity_file", "config"} if protocol == "scp" else set[str]()
    if strange := sorted(options.keys() - known):
        takes = f"; it takes {', '.join(sorted(known))}" if known else "; it takes none"
        raise BadFileUrl(f"{protocol}:// does not take these options: {', '.join(strange)}{takes}")
    if protocol == "gsiftp":
        return GlobusFiles()
    return OpenSshFiles(**{name: str(value) for name, value in options.items()}, timeout_s=timeout_ms / 1000)


class OpenSshFiles:
    """Files of a machine that has a server of ssh. `config` and `identity_file` are files of ssh; without them it is as
    when the user calls ssh."""

    def __init__(
        self,
        *,
        host: str,
        port: str = "",
        username: str = "",
        password: str = "",
        identity_file: str = "",
        config: str = "",
        timeout_s: float,
    ) -> None:
        if host.startswith("-") or username.startswith("-"):
            raise BadFileUrl("scp:// names no machine: it begins with -")
        words = ["sftp", "-oLogLevel=ERROR", *ALIVE, f"-oConnectTimeout={CONNECT_S}"]
        words += ["-F", config] if config else []
        words += [f"-oIdentityFile={identity_file}", "-oIdentitiesOnly=yes"] if identity_file else []
        words += [f"-oPort={port}"] if port else []
        if password:
            ways = "-oPreferredAuthentications=password,keyboard-interactive"
            words += [
                "-oBatchMode=no",  # before -b, which says yes: what ssh reads first counts
                "-oNumberOfPasswordPrompts=1",
                ways,
            ]
        else:
            words += ["-oBatchMode=yes"]
        self._words = [*words, "-b", "-", "--", f"{username}@{host}" if username else host]
        self._password = password
        self._timeout_s = timeout_s

    @staticmethod
    def _strip_protocol(url: str) -> str:
        return unquote(urlsplit(url).path) or "/"

    # what a storage element asks for

    def info(self, url: str) -> dict[str, object]:
        """Of a file: its size, and what else changes with it. A folder is told by what is in it."""
        path = self._strip_protocol(url)
        lines = [found for line in self._do(f"ls -ln {quoted(path)}").splitlines() if (found := LINE.match(line))]
        for found in lines:
            kind, size, changed, name = found.groups()
            if name == path and kind != "d":
                return {"type": "file" if kind == "-" else "other", "size": int(size), "mtime": changed}
        return {"type": "directory", "size": 0}

    def ls(self, url: str) -> list[str]:
        return self._do(f"ls -1 {quoted(self._strip_protocol(url))}").splitlines()

    def rm_file(self, url: str) -> None:
        self._do(f"rm {quoted(self._strip_protocol(url))}")

    def mv(self, source: str, target: str) -> None:
        """Replaces what is there, in one step, where the server has posix-rename, as OpenSSH's has."""
        self._do(f"rename {quoted(source)} {quoted(target)}")

    def makedirs(self, path: str) -> None:
        parts = [part for part in path.split("/") if part]
        folders = ["/" + "/".join(parts[: count + 1]) for count in range(len(parts))]
        self._do("\n".join(f"-mkdir {quoted(folder)}" for folder in folders))

    def put(self, source: str, path: str) -> None:
        """Takes as long as it takes: a connection that is dead ends by itself."""
        opened = source.removeprefix(OPENED_FILES)
        passed = [int(opened)] if opened != source else []
        self._do(f"put {quoted(source)} {quoted(path)}", timeout_s=None, passed=passed)

    def get(self, path: str, descriptor: int, offset: int, grown: OnGrowth, *, timeout_s: float) -> None:
        """Fetch what follows `offset`, into the open file."""
        word = "reget" if offset else "get"
        order = f"{word} {quoted(self._strip_protocol(path))} {OPENED_FILES}{descriptor}\n"
        with self._environment() as environment, tempfile.TemporaryFile("w+") as said:
            process = subprocess.Popen(
                self._words,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=said,
                env=environment.variables,
                pass_fds=[descriptor],
                text=True,
                process_group=0,
            )
            assert process.stdin is not None
            try:
                process.stdin.write(order)
                process.stdin.close()
                _follow(process, descriptor, offset, grown, timeout_s)
            finally:
                process.kill()
                process.wait()
            said.seek(0)
            _demand_success(process.returncode, said.read())
        grown(os.fstat(descriptor).st_size)

    # inside

    def _do(self, batch: str, *, timeout_s: float | None = 0, passed: Sequence[int] = ()) -> str:
        limit = self._timeout_s if timeout_s == 0 else timeout_s
        with self._environment() as environment:
            try:
                done = subprocess.run(
                    self._words,
                    input=f"{batch}\n",
                    capture_output=True,
                    text=True,
                    errors="replace",
                    env=environment.variables,
                    timeout=limit,
                    check=False,
                    process_group=0,
                    pass_fds=passed,
                )
            except subprocess.TimeoutExpired:
                raise TransferFailed(f"no answer within {limit:g} s", passing=True) from None
        _demand_success(done.returncode, done.stderr)
        return done.stdout

    def _environment(self) -> "_Askpass":
        return _Askpass(self._password)


class _Askpass:
    """The environment of ssh: with a password, a helper that tells it."""

    def __init__(self, password: str) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="mendflow-") if password else None
        self.variables = {name: text for name, text in os.environ.items() if not name.startswith("MENDFLOW_")}
        if self._folder is not None:
            helper = Path(self._folder.name, "tell")
            helper.write_text(f'#!/bin/sh\nprintf "%s\\n" "${ASKED}"\n')
            helper.chmod(stat.S_IRWXU)
            self.variables |= {"SSH_ASKPASS": str(helper), "SSH_ASKPASS_REQUIRE": "force", ASKED: password}

    def __enter__(self) -> "_Askpass":
        return self

    def __exit__(self, *_: object) -> None:
        if self._folder is not None:
            self._folder.cleanup()


class GlobusFiles:
    """Files of a GridFTP server, which can only be fetched: the program neither tells their size nor renames. The
    user's proxy certificate says who fetches."""

    def info(self, url: str) -> dict[str, object]:
        return {"type": "file", "size": None}

    def get(self, path: str, descriptor: int, offset: int, grown: OnGrowth, *, timeout_s: float) -> None:
        if offset:
            raise CannotResume
        with tempfile.TemporaryDirectory(prefix="mendflow-") as folder, tempfile.TemporaryFile("w+") as said:
            target = Path(folder, "file")
            process = subprocess.Popen(
                ["globus-url-copy", "-nodcau", path, f"file://{target}"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=said,
                text=True,
                process_group=0,
            )
            try:
                _follow_file(process, target, grown, timeout_s)
            finally:
                process.kill()
                process.wait()
            said.seek(0)
            _demand_success(process.returncode, said.read())
            with target.open("rb") as source, os.fdopen(os.dup(descriptor), "wb") as to:
                shutil.copyfileobj(source, to, 1 << 20)
        grown(os.fstat(descriptor).st_size)


class ProgramFile:
    """A file that a program fetches."""

    def __init__(self, system: RemoteProgram, url: str, *, timeout_s: float) -> None:
        self._system, self._url, self._timeout_s = system, url, timeout_s
        found = system.info(url)
        if found["type"] != "file":
            raise TransferFailed("it is a folder, or no plain file")
        size = found["size"]
        self.size = size if isinstance(size, int) else -1
        self.identity = f"{found['mtime']}-{size}" if "mtime" in found else ""

    def send(self, descriptor: int, offset: int, grown: OnGrowth) -> None:
        self._system.get(self._url, descriptor, offset, grown, timeout_s=self._timeout_s)
        if 0 <= self.size != (got := os.fstat(descriptor).st_size):
            raise TransferFailed(f"it ended after {got} of {self.size} bytes", passing=True)


def quoted(path: str) -> str:
    """A path as sftp's orders have it. In quotes nothing is a pattern."""
    if "\n" in path or "\r" in path or "\\" in path or "\0" in path:
        raise BadFileUrl(f"{path!r:.100} has a character that sftp's orders cannot have: rename the file")
    return '"' + path.replace('"', '\\"') + '"'


def _follow(process: "subprocess.Popen[str]", descriptor: int, offset: int, grown: OnGrowth, timeout_s: float) -> None:
    _until_over(process, lambda: os.fstat(descriptor).st_size, offset, grown, timeout_s)


def _follow_file(process: "subprocess.Popen[str]", target: Path, grown: OnGrowth, timeout_s: float) -> None:
    def size() -> int:
        return target.stat().st_size if target.exists() else 0

    _until_over(process, size, 0, lambda _: grown(0), timeout_s)


def _until_over(
    process: "subprocess.Popen[str]", size: Callable[[], int], reached: int, grown: OnGrowth, timeout_s: float
) -> None:
    """Tell how far it is, and give up when it does not get further."""
    moved_at = time.monotonic()
    while True:
        try:
            process.wait(POLL_S)
            return
        except subprocess.TimeoutExpired:
            now = size()
        if now > reached:
            reached, moved_at = now, time.monotonic()
        elif time.monotonic() - moved_at > timeout_s:
            raise TransferFailed(f"nothing came for {timeout_s:g} s", passing=True)
        grown(reached)


def _demand_success(code: int | None, said: str) -> None:
    if code == 0:
        return
    lines: Sequence[str] = [line.strip() for line in said.splitlines() if line.strip()]
    text = "; ".join(lines[-3:])[:500] or f"the program ended with {code}"
    if MISSING.search(text):
        raise FileMissing(f"there is no such file: {text}")
    raise TransferFailed(text, passing=not LASTING.search(text))
