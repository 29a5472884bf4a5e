"""Files of the server's owner that other accounts must not read: tokens, and secrets of the server itself."""

import os
from pathlib import Path

from mendflow.core.model.errors import Forbidden, InvalidRequest, NotFound


def require_private(status: os.stat_result, path: str | Path, what: str, danger: str) -> None:
    """Refuse a file that other accounts could read, or in which they could write something of their own. A file of root
    is read by its group or by an access list, which looks like a group: so systemd and Kubernetes give secrets to a
    server."""
    own = os.geteuid()
    allowed = 0o040 if status.st_uid == 0 and own != 0 else 0
    if status.st_mode & 0o077 & ~allowed:
        raise Forbidden(
            f"other accounts may read or write the {what} {path}, and {danger}: chmod 600 {path}", path=str(path)
        )
    if status.st_uid not in (own, 0):
        raise Forbidden(
            f"the {what} {path} belongs to another account than the server, which could let itself in: chown it",
            path=str(path),
        )


def read_secret(path: str | Path, what: str) -> str:
    """The one secret in a file that nobody else can read."""
    try:
        with Path(path).open(encoding="utf-8") as file:
            require_private(os.fstat(file.fileno()), path, what, "could speak for this server")
            secret = file.read(10_000).strip()
    except (OSError, UnicodeDecodeError) as error:
        raise NotFound(f"cannot read the {what} {path}; check that it exists and is text", path=str(path)) from error
    if not secret:
        raise InvalidRequest(f"the {what} {path} is empty")
    return secret
