"""Which addresses a pilot transfers files from and to, for jobs that it keeps from what is its own.

The pilot transfers files itself, with its own account. So what its jobs may not reach, it may not read or write for
them. Storage elements are named by an administrator, and are not concerned."""

import os
from collections.abc import Callable
from urllib.parse import unquote, urlsplit

from mendflow.pilot.isolation.options import Isolation

TransferRule = Callable[[str, bool], str]
"""Why the address may not be read, or written if the second is true; empty if it may."""


def any_transfer(_address: str, _writes: bool) -> str:
    return ""


def transfer_rule(isolation: Isolation) -> TransferRule:
    if not isolation.is_set:
        return any_transfer

    def refusal(address: str, writes: bool) -> str:
        path = local_path(address)
        if path is not None:
            return "" if not writes and _is_shown(path, isolation.shown) else _LOCAL
        return _NO_NETWORK if isolation.network == "none" else ""

    return refusal


def local_path(address: str) -> str | None:
    """The path on the pilot's machine that an address means; None for one elsewhere."""
    if address.startswith("/"):
        return address
    parts = urlsplit(address)
    return unquote(parts.path) if parts.scheme.lower() in ("file", "") else None


def _is_shown(path: str, shown: tuple[str, ...]) -> bool:
    real = os.path.realpath(path)
    return any(os.path.commonpath([real, os.path.realpath(each)]) == os.path.realpath(each) for each in shown)


_LOCAL = (
    "this pilot keeps jobs apart from itself, and transfers no files of its own machine for them: use a storage"
    " element, or ask whoever runs the pilot to show the folder to jobs (--sandbox-show)"
)
_NO_NETWORK = "jobs of this pilot have no network (--sandbox-network none), so nothing is transferred for them over one"
