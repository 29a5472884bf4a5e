"""A slot process that is started before its pilot knows its work folder, and loads its modules while the pilot stands
by. It waits for what other slots are started with. If it gets nothing it ends, and has touched nothing."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Sequence

OPTION = "--spare"
MODULE = "mendflow.pilot.slot.process"
_READ_BYTES = 1 << 16


class SpareSlot:
    """In the pilot's process: at most one slot takes it."""

    def __init__(self, environment: dict[str, str]) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process: subprocess.Popen[bytes] | None = subprocess.Popen(
                [sys.executable, "-P", "-m", MODULE, OPTION],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                env=environment,
            )
        self._channel = ours

    def take(self, arguments: Sequence[str], listener: int, pilot: str) -> "subprocess.Popen[bytes] | None":
        """The process, with the arguments of a slot, of which LISTENER is added there; None if there is none. It writes
        where this process does."""
        process, self._process = self._process, None
        if process is None:
            return None
        try:
            socket.send_fds(self._channel, [json.dumps([pilot, *arguments]).encode()], [listener, 1, 2])
        except OSError:  # it has died
            process.kill()
            process.wait()
            return None
        finally:
            self._channel.close()
        return process

    def drop(self) -> None:
        """End it, if no slot has taken it."""
        process, self._process = self._process, None
        if process is not None:
            self._channel.close()
            process.kill()
            process.wait()


def wait_for_arguments() -> list[str] | None:
    """In the spare's process: its arguments, as soon as they come; None if the pilot does not need it, or has ended."""
    with socket.socket(fileno=os.dup(0)) as channel:
        message, descriptors, _, _ = socket.recv_fds(channel, _READ_BYTES, 3)
        while message and (more := channel.recv(_READ_BYTES)):
            message += more
    if not message:
        return None
    listener, *written = descriptors
    for source, target in zip((os.open(os.devnull, os.O_RDONLY), *written), range(3), strict=True):
        os.dup2(source, target)
        os.close(source)
    pilot, folder, number, settings = json.loads(message)
    os.environ["MENDFLOW_PILOT"] = pilot
    return [folder, number, str(listener), settings]
