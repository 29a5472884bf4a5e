"""Where the server of a data folder is: it leaves its address in the folder while it runs.

Whether it runs is said by the lock on its store or, if that is elsewhere, on its folder, and by nothing else: the
kernel gives that back however the server ends, whereas a process number in a file may belong to anybody by now. The
address counts only if it was left by the process that holds the lock. A server that is only just starting holds a
third lock."""

import fcntl
import os
from pathlib import Path

import msgspec

REPORTS = "reports"
"""The folder, in the data folder, of the pages that `mendflow run` writes, one for each case."""
LOCKS = ("store.db.lock", "server.lock", "server.starting.lock")
"""The last one is held by a server from its first moment (cli/starting_server)."""


class ServerInfo(msgspec.Struct, frozen=True):
    """What the server wrote of itself. `stays`: it takes flows until it is stopped. `tls_pin` is the certificate that
    it shows, if it speaks TLS."""

    url: str
    pid: int
    token: str = ""
    stays: bool = False
    tls_pin: str = ""


def find_server(folder: Path) -> ServerInfo | None:
    """The server that runs on this data folder and wants to be found."""
    holder = lock_holder(folder)
    if holder is None:
        return None
    try:
        found = msgspec.json.decode((folder / "server.json").read_bytes(), type=ServerInfo)
    except (OSError, msgspec.DecodeError):
        return None
    # A lock without a name in it was taken while the disk was full.
    return found if not holder or holder.startswith(f"process {found.pid} on ") else None


def lock_holder(folder: Path) -> str | None:
    """The name that the holder of the folder's lock wrote into it, perhaps none; None if nobody holds it."""
    return next((holder for name in LOCKS if (holder := _holder(folder / name)) is not None), None)


def _holder(lock: Path) -> str | None:
    """The lock is shared for the blink of an eye and never taken, and the file is only read."""
    try:
        descriptor = os.open(lock, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return os.pread(descriptor, 200, 0).decode(errors="replace").strip()
    finally:
        os.close(descriptor)
    return None
