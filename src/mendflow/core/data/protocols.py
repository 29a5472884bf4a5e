"""Which protocols storage elements are spoken to by, and which of them can be written to.

A file gets its name in one step, or it is not written. Where a protocol can neither finish an object in one step nor
rename in one, an element can only be read from, and nobody is sent there with a file."""

from typing import Final

LOCAL: Final = frozenset({"file", "local"})
WEB: Final = frozenset({"http", "https"})
OBJECTS: Final = frozenset({"s3", "s3a", "gs", "gcs"})
"""Where a file that is being written is not seen before it is finished."""

HADOOP: Final = frozenset({"arrow_hdfs", "hdfs", "webhdfs"})
"""Whose machine may be left out: it is known to whoever speaks to them."""

WITH_RENAME: Final = HADOOP | {"ftp", "root", "sftp", "smb", "ssh", "webdav"}
READABLE: Final = WEB | {"abfs", "adl", "az", "oci", "oss"}
WRITABLE: Final = LOCAL | OBJECTS | WITH_RENAME
PROTOCOLS: Final = WRITABLE | READABLE
"""Places for files. Of what else fsspec knows, some wrap others, some run programs, and some are no places at all."""


def protocol_of(url: str) -> str:
    return url.partition("://")[0]


def target_flaw(url: str) -> str:
    """Why a job's file cannot be taken to this URL; nothing if it can. What it names is not told: it may hold a
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
    """Why an element cannot be at this URL; nothing if it can."""
    protocol, _, rest = url.partition("://")
    if protocol not in PROTOCOLS:
        return f"nobody here speaks {protocol!r:.80}; use one of {', '.join(sorted(PROTOCOLS))}"
    if protocol in LOCAL:
        return "" if rest.startswith("/") else "it needs a whole path, such as file:///data"
    if protocol not in HADOOP and not rest.split("/", maxsplit=1)[0].rpartition("@")[2]:
        what = "bucket" if protocol in OBJECTS else "machine"
        return f"it names no {what}; write {protocol}://{what.upper()}/PATH"
    return ""
