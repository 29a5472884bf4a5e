"""A pilot process that is started before anybody knows what for, and loads its modules while the command line and the
server load theirs. It waits for its options on standard input. If it gets none it ends, and has touched nothing."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

OPTION = "--standby"


class StandbyPilot:
    """At most one per process: the one that `start` has started and nobody has taken yet."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "mendflow.pilot", OPTION],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def take(
        self, options: Sequence[str], environment: Mapping[str, str], log: Path
    ) -> "subprocess.Popen[bytes] | None":
        """The process, with the options that it has waited for; None if there is none. `environment` is what it gets
        beside its own; what it writes goes to `log`."""
        process, self._process = self._process, None
        if process is None or process.stdin is None:
            return None
        message = {"options": list(options), "environment": dict(environment), "log": str(log)}
        try:
            process.stdin.write(json.dumps(message).encode() + b"\n")
            process.stdin.close()
        except OSError:  # it has died
            process.wait()
            return None
        return process


STANDBY = StandbyPilot()


def wait_for_options() -> list[str] | None:
    """In the pilot's process: the options, as soon as they come; None if whoever started it has ended."""
    line = sys.stdin.buffer.readline()
    if not line:
        return None
    message = json.loads(line)
    os.environ.update(message["environment"])
    descriptor = os.open(message["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (descriptor, 1), (descriptor, 2)):
        os.dup2(source, target)
    os.close(descriptor)
    os.close(nothing)
    options: list[str] = message["options"]
    return options
