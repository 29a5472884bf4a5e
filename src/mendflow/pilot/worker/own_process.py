"""The process that a worker forks for one call: how it begins, and how it ends."""

import atexit
import os
import resource
import signal
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Never

from mendflow.pilot.slot.processes import become_reaper, die_with_parent
from mendflow.pilot.worker import in_environment
from mendflow.pilot.worker.function_faults import CallSetupFailed
from mendflow.pilot.worker.memory_files import new_memory_file

_FAILED = 1
_OWN_PACKAGES = ("mendflow", "msgspec")
"""What the process of a call needs of the pilot's packages."""


def become_child_of(worker: int) -> None:
    """Tie this process to its worker, and what it will start to this process."""
    die_with_parent()
    become_reaper()
    if os.getppid() != worker:
        os._exit(_FAILED)


@contextmanager
def ending_process() -> Iterator[None]:
    """End this process when the work in it has ended, and return to nobody."""
    code = _FAILED
    try:
        yield
        code = 0
    except BaseException:  # noqa: BLE001 - nothing may leave this process, and the log is where it can be told
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


def run_exit_functions() -> None:
    """Do what Python does when it ends: loggers write, temporary folders go."""
    atexit._run_exitfuncs()


def die_alike(status: int) -> Never:
    """End this process as another has ended, by the same signal or with the same code."""
    if os.WIFSIGNALED(status):
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        number = os.WTERMSIG(status)
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else _FAILED)


def execute_single(arguments: list[str], number: int, call: bytes, python: str = "") -> Never:
    """Become an interpreter that has loaded nothing, for one call: this one's, or that of an environment. The arguments
    are those of a worker. The call, which has the values of its secrets, is in a file that only this process has."""
    given = new_memory_file()
    with open(given, "wb", closefd=False) as file:
        file.write(call)
    os.set_inheritable(given, True)
    rest = [*arguments, str(number), str(given)]
    if python:
        places = "\n".join(f"{name}={_place_of(name)}" for name in _OWN_PACKAGES)
        os.execv(python, [python, in_environment.__file__, places, *rest])
    os.execv(sys.executable, [sys.executable, "-P", "-m", "mendflow.pilot.worker.process", *rest])


def _place_of(package: str) -> str:
    """The folder that a package of ours is imported from."""
    file = sys.modules[package].__file__
    assert file is not None
    return os.path.dirname(os.path.dirname(os.path.abspath(file)))


def not_prepared(error: CallSetupFailed) -> Never:
    """In place of the function: there is no process for it."""
    raise error
