"""A job's command in a container: what is started, which processes are the job's, and what they used.

Inside the container a small script starts first, under the image's own /bin/sh. With podman and docker it sets the
job's variables from a file beside the job's folder, which only the pilot's user can read, and empties that file: so
they are neither on a command line nor in what the runtime tells of the container. It notes its process id beside the
folder, which tells that the container has started and where its processes are: a container sees the machine's
processes, so ids are the same inside and outside. It then sets the job's limits, runs the command, and when that has
ended notes what its processes used: neither podman, which runs beside them, nor docker's server, which is no child of
the slot, can be told apart from them or asked for that."""

import os
import re
import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from mendflow.core.model.faults import Fault
from mendflow.core.model.shells import DEFAULT_SHELL, OPTIONS, template_words
from mendflow.lazy import LazyModule, lazy_pattern
from mendflow.pilot.containers.start import ContainerStart
from mendflow.pilot.isolation.accounts import Account
from mendflow.pilot.isolation.confinement import NotConfined
from mendflow.pilot.slot.confining import memory_of
from mendflow.pilot.slot.limits import shell_limits
from mendflow.pilot.slot.messages import SlotWork
from mendflow.pilot.slot.processes import descendants, parent_of
from mendflow.pilot.slot.script_shells import ProcessStart, fits_argument

if TYPE_CHECKING:
    from mendflow.pilot.containers import command_lines, records, start_faults
else:  # most slots never run a container
    command_lines = LazyModule("mendflow.pilot.containers.command_lines")
    records = LazyModule("mendflow.pilot.containers.records")
    start_faults = LazyModule("mendflow.pilot.containers.start_faults")

STARTED_END: Final = ".started"
USAGE_END: Final = ".usage"
VARIABLES_END: Final = ".variables"
SHELL: Final = "/bin/sh"
PASSED_ON: Final = ("TZ", "http_proxy", "https_proxy", "no_proxy", "ftp_proxy", "all_proxy")
"""Variables of the pilot that mean the same inside: the time zone, and the way to the network."""

DOCKER_OF_USER: Final = "unix:///run/user/"
"""A docker that runs without root: root inside is its user outside."""

_CHOOSE: Final = {
    DEFAULT_SHELL: "if command -v bash >/dev/null 2>&1\n"
    'then set -- bash -euo pipefail "$@"; else set -- sh -eu "$@"; fi\n',
    "python": 'if command -v python3 >/dev/null 2>&1; then set -- python3 "$@"; else set -- python "$@"; fi\n',
}
_VARIABLES: Final = '. "$1.variables" && : >"$1.variables" || exit 126\n'
_FIRST: Final = 'echo $$ >"$1.started" || exit 126\n_mendflow_mark=$1\nshift\ntrap : HUP INT TERM\n'
_REST: Final = (
    '"$@"\ncode=$?\n'
    '{ times; while read -r line; do echo "$line"; done </proc/$$/io; } >"$_mendflow_mark.usage" 2>/dev/null\n'
    "exit $code\n"
)
_TIME: Final = lazy_pattern(rb"(\d+)m([\d.,]+)s")
_BYTES: Final = lazy_pattern(rb"^(read|write)_bytes: (\d+)", re.MULTILINE)


class ContainerUsage(NamedTuple):
    """What the processes of a job in a container used, by the time that they had ended."""

    cpu_ms: int = 0
    read_bytes: int = 0
    written_bytes: int = 0


class ContainerCommand:
    """The container of one attempt; `folder` is the attempt's, `pilot` the pilot's id, `account` whose processes it
    has, if not the pilot's."""

    def __init__(
        self, work: SlotWork, start: ContainerStart, folder: str, pilot: str, account: Account | None = None
    ) -> None:
        self._work = work
        self._start = start
        self._folder = folder
        self._pilot = pilot
        self._account = account
        if account is not None and start.kind == command_lines.APPTAINER:
            raise NotConfined("apptainer would run it as root, as it runs this pilot: let the pilot use podman")
        self._name = records.container_name(pilot, work.job, work.fence)
        self._init = self._root = 0
        self._space = ""

    @property
    def digest(self) -> str:
        return self._start.digest

    def process(
        self, script: str, own: Mapping[str, str], host: Mapping[str, str]
    ) -> tuple[ProcessStart, dict[str, str]]:
        """What to start, and its environment: `own` are the job's variables, `host` those of this slot. Notes that the
        container is about to run."""
        inner, from_file = self._inner(script)
        account = self._account
        passed = {name: host[name] for each in PASSED_ON for name in (each, each.upper()) if name in host}
        inner_root = self._start.kind == "docker" and host.get("DOCKER_HOST", "").startswith(DOCKER_OF_USER)
        job = command_lines.JobProcess(
            words=inner,
            folder=self._folder,
            beside=[*self._make_beside(script if from_file else ""), *memory_of(self._work, self._folder)],
            env={**passed, "HOME": self._folder, "MENDFLOW_PILOT": self._pilot, **own},
            devices=self._work.devices,
            uid=0 if inner_root else account.uid if account is not None else os.getuid(),
            gid=0 if inner_root else account.gid if account is not None else os.getgid(),
            groups=os.getgroups() if account is None else (),
            by_root=account is not None,
        )
        labels = {"pilot": self._pilot, "job": self._work.job, "attempt": str(self._work.fence)}
        line = command_lines.run_line(self._start, job, name=self._name, labels=labels)
        if self._reads_variables:
            _write_variables(self._folder + VARIABLES_END, line.inside)
        if account is not None:
            for path in job.beside:
                os.chown(path, account.uid, account.gid)
        records.write_note(self._start, self._name, pilot=self._pilot, job=self._work.job)
        return ProcessStart(line.words[0], line.words, from_file), {**host, **line.env}

    def _make_beside(self, script: str) -> list[str]:
        """The files beside the folder that the job writes, or reads: only what is there can be mounted."""
        paths = [self._folder + end for end in (".output", ".report", STARTED_END, USAGE_END)]
        paths += [self._folder + VARIABLES_END] if self._reads_variables else []
        for path in [*paths, *([script] if script else [])]:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
        return [*paths, *([script] if script else [])]

    @property
    def _reads_variables(self) -> bool:
        """Apptainer keeps nothing of what its environment says."""
        return self._start.kind != command_lines.APPTAINER

    def _inner(self, script: str) -> tuple[list[str], bool]:
        """The words that run inside, and whether they name the script's file."""
        work, text = self._work, self._work.command
        if work.shell in (DEFAULT_SHELL, *OPTIONS):
            as_file = not fits_argument(text)
            words = [script] if as_file else ["-c", text]
            words = words if work.shell == DEFAULT_SHELL else [*_shell_words(work.shell), *words]
        else:
            as_file = True
            words = [script] if work.shell == "python" else template_words(work.shell, script)
        first = _VARIABLES if self._reads_variables else ""
        first += _FIRST + _CHOOSE.get(work.shell, "") + shell_limits(work.limits) + _REST
        return [SHELL, "-c", first, "mendflow", self._folder, *words], as_file

    def pids(self, below: list[int]) -> list[int]:
        """The job's processes: the first one and those below it, and those that lost their parents but see the image.
        `below` are all below this slot: those of the runtime are among them, and of docker only those."""
        if not self._root:
            self._init = self._read_init()
            self._root = parent_of(self._init) if self._init else 0
            self._space = _mount_space(self._init)
            if not self._root:
                return []
        near = below if self._root == os.getpid() else descendants(self._root)
        own = {self._init, *descendants(self._init)}
        return [pid for pid in near if pid in own or (self._space and _mount_space(pid) == self._space)]

    @property
    def has_started(self) -> bool:
        try:
            return os.stat(self._folder + STARTED_END).st_size > 0
        except OSError:
            return False

    def _read_init(self) -> int:
        try:
            with open(self._folder + STARTED_END, "rb") as file:
                return int(file.read())
        except (OSError, ValueError):
            return 0

    def usage(self) -> ContainerUsage | None:
        """What its processes used; None if it was ended before that could be told."""
        try:
            with open(self._folder + USAGE_END, "rb") as file:
                text = file.read(4096)
        except OSError:
            return None
        times = [
            int(minutes) * 60_000 + float(seconds.replace(b",", b".")) * 1000
            for minutes, seconds in _TIME.findall(text)
        ]
        counted = {name: int(number) for name, number in _BYTES.findall(text)}
        return ContainerUsage(round(sum(times)), counted.get(b"read", 0), counted.get(b"write", 0))

    def withdraw(self) -> None:
        """The runtime could not be started: nothing that was written for it is left."""
        _remove_file(self._folder + VARIABLES_END)
        records.forget_note(self._start.records, self._name)

    def end(self, status: int, *, stopped: bool) -> None:
        """The attempt is over: remove the container, unless the runtime has done so because it ended by itself."""
        _remove_file(self._folder + VARIABLES_END)
        if stopped or not os.WIFEXITED(status) or not self.has_started:
            records.remove_container(self._start, self._name)
        else:
            records.forget_note(self._start.records, self._name)

    def start_fault(self, status: int, printed: str) -> Fault | None:
        """Why the container did not start; None if it did."""
        if self.has_started or not os.WIFEXITED(status):
            return None
        return start_faults.start_fault(self._start, os.WEXITSTATUS(status), printed)


def _write_variables(path: str, variables: Mapping[str, str]) -> None:
    """Write them as a script that sets them; only this user can read it."""
    _remove_file(path)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
        for name, value in variables.items():
            file.write(os.fsencode(f"export {name}={shlex.quote(value)}\n"))


def _remove_file(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass


def _mount_space(pid: int) -> str:
    """The mount namespace of a process: those of a container have one of their own."""
    try:
        return os.readlink(f"/proc/{pid}/ns/mnt")
    except OSError:
        return ""


def _shell_words(shell: str) -> list[str]:
    return [shell.split(maxsplit=1)[0], *OPTIONS[shell]]
