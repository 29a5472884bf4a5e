"""Who may ask a server without tokens: the account that runs it, from this machine, and no page of another site."""

import os
from collections.abc import Mapping
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

from mendflow.address_guard import is_loopback
from mendflow.core.model.access_tokens import NAME
from mendflow.core.model.errors import Forbidden
from mendflow.core.model.principals import ADMIN, LOCAL, Principal
from mendflow.local_accounts import account_name

READ_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
ANONYMOUS: Final = Principal("", frozenset())
"""Whoever is not known."""

FOREIGN_SITES: Final = frozenset({b"cross-site", b"same-site"})
"""What a browser says of a request that a page of another site sends; to a browser, all ports of a machine are one
site."""

NOT_OF_HOSTS: Final = frozenset("@/?#\\")

_LOOPBACK_ROLES = frozenset({ADMIN})


def admit_local(method: str, sent: Mapping[bytes, bytes], account: int | None, *, anybody: bool) -> Principal:
    """Who asks a server without tokens. `anybody`: the request may come from whoever likes to send it."""
    host = sent.get(b"host", b"").decode("latin-1")
    if not names_loopback(host):
        raise Forbidden("without a token this server answers only under the name localhost, 127.0.0.1 or [::1]")
    if account is None or account not in (os.geteuid(), 0):
        if anybody:
            return ANONYMOUS
        raise _foreign(account)
    if method not in READ_METHODS:
        origin = sent.get(b"origin", b"").decode("latin-1")
        foreign = origin != "" and urlsplit(origin).netloc.lower() != host.lower()
        if foreign or sent.get(b"sec-fetch-site", b"") in FOREIGN_SITES:
            raise Forbidden("a page of another site may not change anything here; use a token for that")
    name = sent.get(b"x-mendflow-user", b"").decode("latin-1")
    known = _name_of(account)
    said = name if NAME.fullmatch(name) else known if NAME.fullmatch(known) and not known.isdigit() else LOCAL
    return Principal(said, _LOOPBACK_ROLES, account=known)


@lru_cache(maxsize=8)
def _name_of(account: int) -> str:
    """A browser does not say who somebody is, as our commands do: the same person has one name all the same."""
    return account_name(account)


def _foreign(account: int | None) -> Forbidden:
    if account is None:
        return Forbidden(
            "this server has no tokens and answers only the account that runs it, and the kernel does not say which"
            " account you are: ask whoever runs it for a token (mendflow admin tokens create NAME)",
            reason="account",
        )
    return Forbidden(
        f"this server has no tokens and answers only the account that runs it, which is not yours ({account}): ask"
        " whoever runs it for a token (mendflow admin tokens create NAME)",
        reason="account",
    )


@lru_cache(maxsize=64)
def names_loopback(host: str) -> bool:
    """Cached, because every exchange of every pilot asks for the same few host names. Names below localhost are for
    others: a page under one of them is another site."""
    name = _hostname(host)
    return is_loopback(name) and not name.endswith(".localhost")


def _hostname(host: str) -> str:
    """Empty for what is no host: before an `@` would be a user, and behind the others a path."""
    if not NOT_OF_HOSTS.isdisjoint(host):
        return ""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""
