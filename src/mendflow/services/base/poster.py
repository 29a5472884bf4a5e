"""Sends a notification to its address. Services know no HTTP; wiring.py gives them an implementation."""

from collections.abc import Mapping
from typing import Protocol


class Poster(Protocol):
    private: bool  # whether private addresses are allowed

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> str:
        """Empty when the receiver has accepted it; else a sentence that says why not. Never raises."""
        ...


class NoPoster:
    private = True

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> str:
        return "this server has no way out"


NO_POSTER = NoPoster()
