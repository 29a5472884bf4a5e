"""Where the server of a data folder is: it leaves its address in the folder while it runs.

Reading that needs none of the server's own code, so that a command which only asks a running server starts fast."""

import os
from pathlib import Path

import msgspec

from mendflow.core.model.problems import Conflict


class Found(msgspec.Struct, frozen=True):
    """What the server wrote of itself."""

    url: str
    pid: int
    token: str = ""


def find_server(folder: Path) -> Found | None:
    """The server that runs on this data folder, if its process is alive."""
    try:
        found = msgspec.json.decode((folder / "server.json").read_bytes(), type=Found)
        os.kill(found.pid, 0)
    except (OSError, msgspec.DecodeError):
        return None
    return found


def refuse_if_taken(folder: Path) -> None:
    """Two servers on one folder would fight; say so before anything is begun."""
    found = find_server(folder)
    if found is not None:
        raise Conflict(
            f"process {found.pid} already runs on {folder}; see it with mendflow watch last, wait for it,"
            " or give another folder by --data DIR",
            pid=found.pid,
        )
