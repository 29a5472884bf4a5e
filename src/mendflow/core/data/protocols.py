"""Which protocols storage elements may use, and which of them support writing.

A file must get its name atomically. If a protocol can neither complete an object nor rename one atomically, an element
is read-only."""

from typing import Final

LOCAL: Final = frozenset({"file", "local"})
WEB: Final = frozenset({"http", "https"})
OBJECTS: Final = frozenset({"s3", "s3a", "gs", "gcs"})
"""Protocols under which an unfinished file is not visible."""

HADOOP: Final = frozenset({"arrow_hdfs", "hdfs", "webhdfs"})
"""Protocols whose host may be omitted: the client knows it."""

WITH_RENAME: Final = HADOOP | {"ftp", "root", "scp", "sftp", "smb", "ssh", "webdav"}
READABLE: Final = WEB | {"abfs", "adl", "az", "gsiftp", "oci", "oss"}
WRITABLE: Final = LOCAL | OBJECTS | WITH_RENAME
PROTOCOLS: Final = WRITABLE | READABLE
"""Protocols of places for files. Of fsspec's other protocols, some wrap others, some run programs, and some are not
places."""


CLIENT_PROGRAMS: Final = {"scp": "sftp", "gsiftp": "globus-url-copy"}
"""Protocols that are spoken by a program of the machine, and which that is."""


def protocol_of(url: str) -> str:
    return url.partition("://")[0]


def target_flaw(url: str) -> str:
    """Why a job's file cannot be written to this URL; empty if it can. Does not repeat the URL: it may contain a
    password."""
    protocol = protocol_of(url)
    if flaw := protocol_flaw(url):
        return flaw
    if protocol not in WRITABLE:
        return f"{protocol}:// can only be read from; use one of {', '.join(sorted(WRITABLE))}"
    if url.endswith("/") or "\0" in url or ".." in url.split("/"):
        return "it must name a file, without `..`"
    return ""


def protocol_flaw(url: str) -> str:
    """Why an element cannot be at this URL; empty if it can."""
    protocol, _, rest = url.partition("://")
    if protocol not in PROTOCOLS:
        return f"{protocol!r:.80} is not supported; use one of {', '.join(sorted(PROTOCOLS))}"
    if protocol in LOCAL:
        return "" if rest.startswith("/") else "it needs a whole path, such as file:///data"
    if protocol not in HADOOP and not rest.split("/", maxsplit=1)[0].rpartition("@")[2]:
        what = "bucket" if protocol in OBJECTS else "machine"
        return f"it names no {what}; write {protocol}://{what.upper()}/PATH"
    return ""
