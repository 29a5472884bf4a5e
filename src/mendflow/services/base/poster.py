"""Sends a notification to its address. Services know neither HTTP nor mail; wiring.py gives them an implementation."""

from collections.abc import Mapping
from typing import Protocol

import msgspec

from mendflow.address_guard import OWN_MACHINE, AddressGuard


class Mail(msgspec.Struct, frozen=True, kw_only=True):
    """A mail in plain text. `id` is the same however often it is sent: mail programs show it once."""

    id: str
    to: tuple[str, ...]
    subject: str
    text: str


class Poster(Protocol):
    guard: AddressGuard  # which addresses it sends to
    mails: bool  # whether it knows a mail server

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> str:
        """Empty when the receiver has accepted it; else a sentence that says why not. Never raises."""
        ...

    async def mail(self, mail: Mail) -> str:
        """Empty when the mail server has accepted it; else a sentence that says why not. Never raises."""
        ...


class NoPoster:
    guard = OWN_MACHINE
    mails = False

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> str:
        return "this server has no way out"

    async def mail(self, mail: Mail) -> str:
        return "this server has no way out"


NO_POSTER = NoPoster()
