"""Which addresses a pilot transfers files from and to, for jobs that it keeps from what is its own.

The pilot transfers files itself, with its own account. So what its jobs may not reach, it may not read or write for
them. Storage elements are named by an administrator, and are not concerned."""

from collections.abc import Callable
from urllib.parse import unquote

from mendflow.core.data.protocols import LOCAL, PROTOCOLS
from mendflow.pilot.isolation.options import Isolation
from mendflow.transfer.errors import BadFileUrl
from mendflow.transfer.rooted_paths import escapes_root

TransferCheck = Callable[[str, bool], str]
"""Why the address may not be read, or written if the second is true; empty if it may."""

TransferBounds = Callable[[str], str]
"""The folder that a file with this address may not lead out of; empty if there is none. Raises BadFileUrl for a file
that may not be transferred."""


def any_transfer(_address: str, _writes: bool) -> str:
    return ""


def transfer_check(isolation: Isolation) -> TransferCheck:
    if not isolation.is_set:
        return any_transfer

    def refusal(address: str, writes: bool) -> str:
        path = local_path(address)
        if path is not None:
            return "" if not writes and not all(escapes_root(each, path) for each in isolation.shown) else _LOCAL
        return _NO_NETWORK if isolation.network == "none" else ""

    return refusal


def local_path(address: str) -> str | None:
    """The path on the pilot's machine that an address means; None for one elsewhere. What is no address for a transfer
    counts as one here: nobody has shown it to jobs."""
    protocol, mark, rest = address.partition("://")
    if mark and protocol.lower() in PROTOCOLS - LOCAL:
        return None
    return unquote(rest.removeprefix("localhost")) if mark else address


def bounds_of(isolation: Isolation) -> TransferBounds:
    """A link that somebody puts there after a look at the path must not lead out of what is shown. So a path that leads
    out of it by now is refused, whatever the look had found."""

    def folder(address: str) -> str:
        path = local_path(address) if isolation.is_set else None
        if path is None:
            return ""
        found = next((each for each in isolation.shown if not escapes_root(each, path)), "")
        if not found:
            raise BadFileUrl(_LOCAL)
        return found

    return folder


def unbounded(_address: str) -> str:
    return ""


_LOCAL = (
    "this pilot keeps jobs apart from itself, and transfers no files of its own machine for them: use a storage"
    " element, or ask whoever runs the pilot to show the folder to jobs (--sandbox-show)"
)
_NO_NETWORK = "jobs of this pilot have no network (--sandbox-network none), so nothing is transferred for them over one"
