"""Makes an environment in a folder: which programs are run, and what their failures mean."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from mendflow.core.model.faults import Fault
from mendflow.core.model.software import CONDA, LOCK, PROJECT, REQUIREMENTS, Software
from mendflow.lazy import lazy_pattern
from mendflow.pilot.files.staging_faults import StagingFailed
from mendflow.pilot.slot.parent_death import KillOnParentDeath
from mendflow.pilot.software.faults import bad_environment, environment_not_made

CONDA_PROGRAMS: Final = ("micromamba", "mamba", "conda")
PASSING: Final = lazy_pattern(
    r"(?i)dns error|connection (?:refused|reset|timed out|aborted)|connect error|failed to connect|timed out|timeout"
    r"|temporary failure|name resolution|network is unreachable|no space left|read-only file system|disk quota"
    r"|\b50[0234]\b|could not resolve host|error sending request|client error|incompleteread|connectionerror"
)
"""What programs print when it is not the description's fault."""

AS_PIP: Final = {
    "PIP_INDEX_URL": "UV_DEFAULT_INDEX",
    "PIP_EXTRA_INDEX_URL": "UV_INDEX",
    "PIP_FIND_LINKS": "UV_FIND_LINKS",
    "PIP_CERT": "SSL_CERT_FILE",
}
"""What somebody has told pip about where packages are holds for uv too."""

SHOWN_LINES: Final = 12


class Build(NamedTuple):
    """The commands that make an environment, one after the other, and the variables that they need."""

    commands: list[list[str]]
    variables: dict[str, str]


def find_uv() -> list[str]:
    """How uv is called here: the program on the PATH, or the package; empty if there is none."""
    if found := shutil.which("uv"):
        return [found]
    beside = Path(sys.executable).with_name("uv")
    return [str(beside)] if os.access(beside, os.X_OK) else []


def build_of(software: Software, prefix: str, files: str) -> Build:
    """`files` is the folder that holds the files of the description. Raises StagingFailed if nothing here can make
    it."""
    if software.kind == "conda":
        return Build([_conda_command(software, prefix, files)], {})
    uv = find_uv()
    if software.kind == "uv":
        if not uv:
            raise StagingFailed(environment_not_made(software.shown, "there is no uv on this host: install it"))
        sync = [*uv, "sync", "--frozen", "--no-install-project", "--no-dev", "--no-progress", "--directory", files]
        return Build([[*sync, "--python", software.python or sys.executable]], {"UV_PROJECT_ENVIRONMENT": prefix})
    python = os.path.join(prefix, "bin", "python")
    if uv:
        make = [*uv, "venv", "--no-progress", "--no-project", "--python", software.python or sys.executable, prefix]
        install = [*uv, "pip", "install", "--no-progress", "--python", python, "-r", _requirements(files)]
        return Build([make, install], {})
    interpreter = _python_of(software)
    install = [python, "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "-r", _requirements(files)]
    return Build([[interpreter, "-m", "venv", prefix], install], {})


def _requirements(files: str) -> str:
    return os.path.join(files, REQUIREMENTS)


def _python_of(software: Software) -> str:
    """The interpreter that makes an environment where uv does not find one."""
    if not software.python:
        return sys.executable
    short = ".".join(software.python.split(".")[:2])
    if found := shutil.which(f"python{short}"):
        return found
    reason = f"there is no python{short} on this host, and no uv that would bring it"
    raise StagingFailed(environment_not_made(software.shown, reason))


def _conda_command(software: Software, prefix: str, files: str) -> list[str]:
    program = next((found for name in CONDA_PROGRAMS if (found := shutil.which(name))), "")
    if not program:
        reason = f"there is none of {', '.join(CONDA_PROGRAMS)} on this host"
        raise StagingFailed(environment_not_made(software.shown, reason))
    described = os.path.join(files, CONDA)
    if os.path.basename(program) == "micromamba":
        return [program, "create", "--yes", "--quiet", "--prefix", prefix, "--file", described]
    return [program, "env", "create", "--yes", "--quiet", "--prefix", prefix, "--file", described]


def write_packages(software: Software, files: Path) -> None:
    """A list of packages as the file that programs read."""
    if software.packages:
        (files / REQUIREMENTS).write_text("".join(f"{each}\n" for each in software.packages), encoding="utf-8")


def file_names(software: Software) -> set[str]:
    """What the files of such a description may be called."""
    if software.kind == "uv":
        return {PROJECT, LOCK}
    return {CONDA} if software.kind == "conda" else set(software.files)


def run_build(
    software: Software, build: Build, folder: str, environment: Mapping[str, str], wanted: Callable[[], bool], lock: int
) -> None:
    """Run the commands; the first that fails ends it. They die with this process, and whatever is left of them holds
    the lock, so that nobody else works in the same folder."""
    variables = {**environment, **build.variables}
    for pip, uv in AS_PIP.items():
        if pip in variables:
            variables.setdefault(uv, variables[pip])
    variables.setdefault("UV_LINK_MODE", "copy")  # a link would let a job change uv's own cache
    for name in ("VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME", "MENDFLOW_TOKEN"):
        variables.pop(name, None)
    parent_death = KillOnParentDeath()
    try:
        for command in build.commands:
            code, printed = _run(command, folder, variables, wanted, parent_death, lock)
            if code:
                raise StagingFailed(failure(software, os.path.basename(command[0]), printed))
    except OSError as error:
        raise StagingFailed(environment_not_made(software.shown, str(error))) from None
    finally:
        parent_death.close()


def _run(
    command: list[str],
    folder: str,
    variables: dict[str, str],
    wanted: Callable[[], bool],
    parent_death: KillOnParentDeath,
    lock: int,
) -> tuple[int, str]:
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        process_group=0,
        pass_fds=(lock, *parent_death.descriptors()),
    )
    parent_death.hold(process.pid)
    while True:
        try:
            printed, _ = process.communicate(timeout=1)
            return process.returncode, printed.decode(errors="replace")
        except subprocess.TimeoutExpired:
            if not wanted():
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
                return -signal.SIGKILL, "the pilot leaves: timed out"


def failure(software: Software, program: str, printed: str) -> Fault:
    """The fault for what a program has printed."""
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    begin = next((at for at, line in enumerate(lines) if line.lower().startswith(("error", "× "))), 0)
    told = " ".join(lines[begin:][-SHOWN_LINES:]).removeprefix("error: ").removeprefix("ERROR: ")
    reason = f"{program} says: {told}" if told else f"{program} failed and said nothing"
    passing = PASSING.search(printed) is not None
    return environment_not_made(software.shown, reason) if passing else bad_environment(software.shown, reason)
