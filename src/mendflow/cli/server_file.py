"""The server of a data folder, as commands see it: to be asked if it runs, and in the way of a second one."""

from pathlib import Path

from mendflow.client.server_file import ServerInfo, find_server
from mendflow.core.model.errors import Conflict

__all__ = ["ServerInfo", "find_server", "refuse_if_taken"]


def refuse_if_taken(folder: Path) -> None:
    """Two servers on one folder would fight; say so before anything is begun."""
    found = find_server(folder)
    if found is not None:
        raise Conflict(
            f"process {found.pid} already runs on {folder}; see it with mendflow watch last, wait for it,"
            " or give another folder by --data-dir DIR",
            pid=found.pid,
        )
