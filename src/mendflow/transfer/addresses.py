"""URLs of files: parsing, and how they are shown.

That a place is within its element follows from its text (see core/data/paths). Where symbolic links on a disk lead is
seen when it is opened (see rooted_paths)."""

import os
import urllib.parse
from typing import NamedTuple

from mendflow.core.data.protocols import LOCAL, PROTOCOLS, WEB
from mendflow.core.data.url_passwords import SEAL, password_in
from mendflow.transfer.errors import BadFileUrl


class FileAddress(NamedTuple):
    """`path` of a local file is the system's path; `url` is the original."""

    protocol: str
    path: str
    url: str


def address_of(url: str) -> FileAddress:
    """Parses a URL or an absolute path."""
    if password_in(url).startswith(SEAL):
        raise BadFileUrl(
            f"the password for {shown(url)!r} was sealed by the servers of another store, and cannot be opened here: "
            "deploy the flow again, with the password"
        )
    if os.path.isabs(url):
        return FileAddress("file", _tidy(url, url), url)
    protocol, mark, _ = url.partition("://")
    if not mark or protocol not in PROTOCOLS or "::" in url:
        some = "file, http, https, s3, gs, sftp, root"
        raise BadFileUrl(f"{shown(url)!r} is not a place for a file: give a URL ({some}) or an absolute path")
    if protocol in LOCAL:
        parts = urllib.parse.urlsplit(url)
        if parts.netloc not in ("", "localhost"):
            raise BadFileUrl(f"{shown(url)!r} names a machine; a file of this one is file:///PATH")
        return FileAddress(
            "file", _tidy(urllib.parse.unquote(url.partition("://")[2].removeprefix("localhost")), url), url
        )
    if protocol not in WEB:
        _tidy(url.partition("://")[2], url)
    return FileAddress(protocol, url, url)


def _tidy(path: str, url: str) -> str:
    for text in (path, urllib.parse.unquote(path)):
        if ".." in text.split("/") or "\0" in text:
            raise BadFileUrl(f"{shown(url)!r} goes up with `..`: name the place itself")
    return path


def shown(url: str) -> str:
    """A URL for people and logs: without a password and without its query."""
    if "://" not in url:
        return url
    head, _, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    path, query, _ = path.partition("?")
    user, at, name = host.rpartition("@")
    return f"{head}://{user.partition(':')[0]}{at}{name}{slash}{path}" + ("?..." if query else "")
