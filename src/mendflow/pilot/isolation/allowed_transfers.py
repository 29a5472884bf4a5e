"""Which addresses a pilot transfers files from and to, for jobs that it keeps from what is its own.

The pilot transfers files itself, with its own account. So what its jobs may not reach, it may not read or write for
them: no files of its machine, and no private addresses, such as a server on its loopback or what a cloud tells a
machine. Storage elements are named by an administrator, and are not concerned."""

from collections.abc import Callable
from typing import Final
from urllib.parse import unquote

from mendflow.address_guard import AddressGuard, allowed_address
from mendflow.core.data.protocols import HADOOP, LOCAL, PROTOCOLS, WEB, WITH_RENAME
from mendflow.pilot.isolation.options import Isolation
from mendflow.transfer.errors import BadFileUrl
from mendflow.transfer.guarded_web import demand_reachable, refusal_of
from mendflow.transfer.rooted_paths import escapes_root

HOST_IN_URL: Final = WITH_RENAME | {"gsiftp"}
"""Protocols beside those of the web whose addresses name a machine."""

LEADS_ON: Final = HADOOP | {"webdav"}
"""Protocols whose clients go wherever the first machine sends them, and look at no guard on the way."""

TransferCheck = Callable[[str, bool], str]
"""Why the address may not be read, or written if the second is true; empty if it may."""

TransferBounds = Callable[[str], str]
"""The folder that a file with this address may not lead out of; empty if there is none. Raises BadFileUrl for a file
that may not be transferred."""


def any_transfer(_address: str, _writes: bool) -> str:
    return ""


def transfer_check(isolation: Isolation) -> TransferCheck:
    guard = address_guard(isolation)
    if guard is None:
        return any_transfer

    def refusal(address: str, writes: bool) -> str:
        path = local_path(address)
        if path is not None:
            return "" if not writes and not all(escapes_root(each, path) for each in isolation.shown) else _LOCAL
        return _NO_NETWORK if isolation.network == "none" else _host_refusal(address, guard)

    return refusal


def address_guard(isolation: Isolation) -> AddressGuard | None:
    """What is reached for jobs at addresses that they or their flows name; None: whatever the pilot reaches, because
    its jobs reach it themselves."""
    if not isolation.is_set:
        return None
    return AddressGuard(allowed=tuple(allowed_address(each) for each in isolation.addresses))


def _host_refusal(address: str, guard: AddressGuard) -> str:
    """Of the web the text says enough here: each connection is checked when it is made. Programs and libraries of other
    protocols resolve names by themselves: what a name means now is checked before they do."""
    protocol = address.partition("://")[0].lower()
    try:
        if protocol in WEB:
            return refusal_of(address, guard)
        if protocol in LEADS_ON:
            return (
                f"{protocol}:// leads on to wherever its server says, and this pilot, which keeps jobs apart from"
                " itself, follows that only for storage elements: ask an administrator to make it one (mendflow data"
                " storage add)"
            )
        if protocol in HOST_IN_URL:
            demand_reachable(address, guard)
    except BadFileUrl as error:
        return str(error)
    return ""


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
