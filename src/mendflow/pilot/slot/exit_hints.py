"""What an exit code most likely means for whoever wrote the script, and what to do about it.

A job runs in a folder of its own on a machine that its author may never have seen: a program that is not there, or a
file that was left beside the flow, is the usual reason of a first failure. A name alone proves neither: advice about a
file needs a complaint, in the job's own log, that this very path was not found."""

import os
import re
import socket
from collections.abc import Sequence
from typing import Final

from mendflow.core.model.shells import pipes_fail
from mendflow.lazy import lazy_pattern

BROKEN_PIPE: Final = 141
NOT_EXECUTABLE, NOT_FOUND = 126, 127
TAIL_CHARS: Final = 4000

_COMPLAINT: Final = lazy_pattern(
    r"^.*?: (?:line )?\d+: (?:exec: )?(?P<name>.+?):"
    r" (?:command not found|not found|No such file or directory|Permission denied|cannot execute.*)$",
    re.MULTILINE,
)
_NOT_FOUND: Final = lazy_pattern(
    r"no such file or directory|unable to access jarfile|cannot find module|file not found"
    r"|filenotfounderror|does not exist",
    re.IGNORECASE,
)
_INTERPRETER: Final = lazy_pattern(r"env: .(?P<name>[^'\u2019\n]+).: No such file or directory", re.MULTILINE)


def host_name() -> str:
    return socket.gethostname()


def exit_hint(code: int, *, shell: str, unstaged: Sequence[str], folder: str, log_tail: str) -> str:
    """What to do about a script that ended with this code; empty if the code says nothing that its author does not
    know. `unstaged` are files beside the flow that the command names."""
    if code == BROKEN_PIPE and pipes_fail(shell):
        return (
            "a command wrote into a pipe whose reader had ended already, as `sort FILE | head -1` does, and scripts"
            " run with `pipefail`: let the last command read everything (`sort FILE | sed -n 1p`), add"
            " `|| [ $? -eq 141 ]` behind the pipe, or say `shell: sh`"
        )
    log = log_tail[-TAIL_CHARS:]
    complained_of = _named_in(log) if code in (NOT_EXECUTABLE, NOT_FOUND) else ""
    if left := _left_behind(unstaged, folder, complained_of, log):
        return _hint_for_left(left)
    return _hint_for(complained_of, code, folder) if code in (NOT_EXECUTABLE, NOT_FOUND) else ""


def _left_behind(unstaged: Sequence[str], folder: str, complained_of: str, log: str) -> list[str]:
    """Those of the flow's files that the command names, that the job's folder lacks, and that were looked for in vain:
    by the shell, whose last complaint says why the script ended, or by a program that says so in a line of the log."""
    absent = [name for name in unstaged if not os.path.lexists(os.path.join(folder, name))]
    if not absent:
        return []
    if complained_of:
        return [name for name in absent if name == complained_of.removeprefix("./")]
    complaints = [line for line in log.splitlines() if _NOT_FOUND.search(line)]
    return [name for name in absent if any(_names_path(line, name, folder) for line in complaints)]


def _names_path(line: str, name: str, folder: str) -> bool:
    """Whether a line names this path of the job's folder, and not a longer one that ends or begins with it."""
    before = "|".join(re.escape(f"{each}/") for each in (".", folder, os.path.realpath(folder)))
    return re.search(rf"(?<![\w./~-])(?:{before})?{re.escape(name)}(?!\.?[\w/-])", line) is not None


def _hint_for_left(names: Sequence[str]) -> str:
    shown = ", ".join(names[:5])
    if len(names) == 1:
        return (
            f"`{shown}` was not found in the job's folder, which is its own; the flow's folder has such a file, and it"
            f" is not among the job's inputs: add `inputs: [{shown}]`"
        )
    return (
        f"{shown} were not found in the job's folder, which is its own; the flow's folder has such files, and they are"
        f" not among the job's inputs: add `inputs: [{shown}]`"
    )


def _named_in(log: str) -> str:
    """The command that a shell has complained of last."""
    found = [*_COMPLAINT.finditer(log), *_INTERPRETER.finditer(log)]
    return max(found, key=re.Match.start)["name"] if found else ""


def _hint_for(name: str, code: int, folder: str) -> str:
    host = f"this pilot (host {host_name()})"
    if not name or len(name) > 200:
        return (
            "a job runs in a folder of its own: if the command is a file of the flow's folder, add it to `inputs`;"
            f" otherwise it is not installed on {host}"
        )
    base = name.removeprefix("./")
    if os.path.isfile(os.path.join(folder, base)):
        return _hint_for_file(name, base, os.access(os.path.join(folder, base), os.X_OK))
    if os.path.isabs(name):
        return f"`{name}` is not on {host}: install it there, or bring it with `inputs`"
    if "/" in name:
        return (
            f"`{name}` is not in the job's folder, which is its own: if it is a file of the flow's folder, add"
            f" `inputs: [{base}]`"
        )
    if code == NOT_EXECUTABLE:
        return f"`{name}` on {host} may not be executed by the pilot's user"
    return (
        f"`{name}` is not installed on {host}, or not on its PATH; if it is a file of the flow's folder, add"
        f" `inputs: [{name}]` and call it as `./{name}`"
    )


def _hint_for_file(name: str, base: str, executable: bool) -> str:
    if not executable:
        return f"`{base}` is in the job's folder and may not be executed: `chmod +x` the file, or say `bash {base}`"
    if "/" not in name:
        return f"`{base}` is in the job's folder, which is not on the PATH: call it as `./{base}`"
    return f"`{base}` is in the job's folder, but the interpreter that its first line names is not on this machine"
