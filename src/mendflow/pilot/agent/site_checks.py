"""Checks whether this machine has what the site's settings require for jobs.

It checks everything and reports all that is missing at once, so that an administrator has to fix the place only
once."""

import importlib.util
import logging
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from mendflow.core.model.checks import PilotChecks
from mendflow.core.model.data import StorageElement
from mendflow.core.scheduling.amounts import size
from mendflow.pilot.agent.http import ServerAway, ServerRefused
from mendflow.pilot.files.catalogue import FileCatalogue
from mendflow.pilot.slot.script_shells import SHELL
from mendflow.transfer.element import StorageClient
from mendflow.transfer.errors import BadFileUrl, TransferFailed

log = logging.getLogger("mendflow.pilot")

WORDS_BYTES = 300

Reach = Callable[[StorageElement], str]
"""Why a storage element cannot be reached from here; empty if it can."""


def missing_requirements(checks: PilotChecks, folder: Path, *, memory_bytes: int, reach: Reach) -> list[str]:
    """What is missing here, one sentence each. `memory_bytes` is what jobs would have."""
    found = [*_of_machine(checks, folder, memory_bytes), *_of_python(checks)]
    found += [f"storage element {element.name}: {why}" for element in checks.storage if (why := reach(element))]
    if checks.script and (why := _of_script(checks, folder)):
        found.append(why)
    return found


def unreachable(element: StorageElement) -> str:
    try:
        StorageClient(element).reach()
    except (BadFileUrl, TransferFailed) as error:
        return str(error)
    return ""


def why_unreached(storage: str, catalogue: FileCatalogue) -> str:
    """Why the storage element of this name cannot be reached from here. If the check itself is impossible, because the
    server is away for instance, the element counts as reachable."""
    try:
        element = catalogue.locate([]).near
    except (ServerAway, ServerRefused) as error:
        log.warning("could not check whether storage element %s can be reached: %s", storage, error)
        return ""
    if element is None:
        log.warning("the server knows no storage element %s; mendflow data storage lists those that there are", storage)
        return ""
    why = unreachable(element)
    return f"storage element {storage}: {why}" if why else ""


def version(text: str) -> tuple[int, ...] | None:
    """A version as numbers, such as 3.11; None if it is not a version."""
    return tuple(map(int, text.split("."))) if re.fullmatch(r"\d{1,4}(\.\d{1,4}){0,2}", text) else None


def _of_machine(checks: PilotChecks, folder: Path, memory_bytes: int) -> Iterator[str]:
    for program in checks.executables:
        if shutil.which(program) is None:
            yield f"there is no program {program} on the PATH"
    free = shutil.disk_usage(folder).free
    if free < checks.disk_bytes:
        yield f"{folder} has {size(free)} free, and {size(checks.disk_bytes)} are needed"
    if memory_bytes < checks.memory_bytes:
        yield f"there are {size(memory_bytes)} of memory, and {size(checks.memory_bytes)} are needed"


def _of_python(checks: PilotChecks) -> Iterator[str]:
    wanted = version(checks.python or "0")
    assert wanted is not None, "validated when the settings were read"
    if sys.version_info[: len(wanted)] < wanted:
        has = ".".join(map(str, sys.version_info[:3]))
        yield f"{sys.executable} is Python {has}, and {checks.python} is needed"
    for module in checks.modules:
        if not _there(module):
            yield f"{sys.executable} has no module {module}"


def _there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):  # the package that would contain it
        return False


def _of_script(checks: PilotChecks, folder: Path) -> str:
    """Run the site's script; if it hangs, kill it with everything that it started."""
    command = [SHELL, "-c", checks.script]
    process = subprocess.Popen(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        process_group=0,
    )
    try:
        out, _ = process.communicate(timeout=checks.script_ms / 1000)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        process.communicate()
        return f"the site's script did not end within {checks.script_ms / 1000:g} s"
    if process.returncode == 0:
        return ""
    words = out[-WORDS_BYTES:].decode(errors="replace").strip().splitlines()
    return f"the site's script ended with {process.returncode}: {words[-1] if words else 'it said nothing'}"
