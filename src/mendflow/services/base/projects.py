"""Where something stays that has a project.

The gate of the server (server/gate.py) has looked where it is, or has chosen where it is made. Until it is written,
somebody else may have made something of that name: whoever writes looks again, at what it writes over."""

from mendflow.core.model.errors import Conflict
from mendflow.core.model.principals import DEFAULT_PROJECT


def kept_project(what: str, stored: str | None, wanted: str) -> str:
    """The project that something is in, or is made in if nothing is stored. `wanted` is where the caller may change it;
    empty: wherever it is, else in the default project. Refused if it is in another."""
    if stored is None:
        return wanted or DEFAULT_PROJECT
    if wanted not in ("", stored):
        raise Conflict(f"{what} belongs to another project, and stays there; take another name")
    return stored
