"""The server on a data folder, as commands see it: to ask if it runs, and to refuse a second one."""

from pathlib import Path

from mendflow.client.server_file import ServerInfo, find_server
from mendflow.core.model.errors import Conflict

__all__ = ["ServerInfo", "find_server", "refuse_if_taken"]


def refuse_if_taken(folder: Path) -> None:
    """Refuse before anything starts: two servers on one folder would conflict."""
    found = find_server(folder)
    if found is not None and found.stays:
        raise Conflict(
            f"a server, process {found.pid}, runs on {folder} at {found.url}; mendflow start FLOW gives it the flow,"
            " or give another folder by --data-dir DIR",
            pid=found.pid,
        )
    if found is not None:
        raise Conflict(
            f"process {found.pid} already runs on {folder}; see it with mendflow watch last, wait for it,"
            " or give another folder by --data-dir DIR",
            pid=found.pid,
        )
