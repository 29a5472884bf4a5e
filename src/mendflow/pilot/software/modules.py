"""Environment modules of a cluster: what `module load` changes in the environment of a process."""

import os
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from typing import Final

from mendflow.pilot.files.staging_faults import StagingFailed
from mendflow.pilot.slot.script_shells import find_bash
from mendflow.pilot.software.faults import modules_not_loaded

LOAD_S: Final = 120
KEPT_S: Final = 600
"""So long what loading has given counts; an administrator may change a module."""

FIND: Final = """
if ! type module >/dev/null 2>&1; then
  for init in "${LMOD_PKG:-/nowhere}/init/bash" "${MODULESHOME:-/nowhere}/init/bash" \\
      /etc/profile.d/lmod.sh /etc/profile.d/z00_lmod.sh /etc/profile.d/modules.sh \\
      /usr/share/lmod/lmod/init/bash /usr/share/modules/init/bash; do
    if [ -r "$init" ]; then . "$init" >/dev/null 2>&1; type module >/dev/null 2>&1 && break; fi
  done
fi
if ! type module >/dev/null 2>&1; then echo "there is no command module on this host" >&2; exit 97; fi
"""
LOAD: Final = """
said=$(mktemp) || exit 98
module load "$@" 2>"$said"; code=$?
cat "$said" >&2
failed=$(grep -ciE '(^|[^a-z])error|unable to locate|cannot be loaded|unknown module' "$said")
rm -f "$said"
[ "$code" = 0 ] && [ "$failed" = 0 ] || exit 99
exec env -0
"""
_OF_THE_SHELL: Final = frozenset({"_", "SHLVL", "PWD", "OLDPWD", "BASH_ENV"})


class ClusterModules:
    """What the modules of this host change, by their names. Blocks; is meant for threads."""

    def __init__(self, variables: Callable[[], Mapping[str, str]] = lambda: os.environ) -> None:
        self._variables = variables
        self._known: dict[tuple[str, ...], tuple[float, dict[str, str]]] = {}
        self._guard = threading.Lock()

    def load(self, modules: tuple[str, ...]) -> dict[str, str]:
        """The variables that a process has to have others of. Raises StagingFailed."""
        with self._guard:
            known = self._known.get(modules)
            if known is None or time.monotonic() > known[0] + KEPT_S:
                known = self._known[modules] = (time.monotonic(), loaded(modules, self._variables()))
            return known[1]


def loaded(modules: tuple[str, ...], environment: Mapping[str, str]) -> dict[str, str]:
    bash = find_bash()
    if not bash:
        raise StagingFailed(modules_not_loaded(modules, "there is no bash on this host"))
    command = [bash, "-c", FIND + LOAD, "bash", *modules]
    try:
        answer = subprocess.run(
            command, env=dict(environment), stdin=subprocess.DEVNULL, capture_output=True, timeout=LOAD_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise StagingFailed(modules_not_loaded(modules, str(error))) from None
    if answer.returncode:
        lines = [line for line in answer.stderr.decode(errors="replace").splitlines() if line.strip()]
        raise StagingFailed(modules_not_loaded(modules, " ".join(lines[-5:]) or f"exit code {answer.returncode}"))
    pairs = (each.partition("=") for each in os.fsdecode(answer.stdout).split("\0") if each)
    return {name: value for name, _, value in pairs if environment.get(name) != value and name not in _OF_THE_SHELL}
