"""What an attempt gets of its software when it starts."""

from typing import Final

import msgspec


class ReadySoftware(msgspec.Struct, frozen=True):
    """The variables that its process gets beside its own, and the interpreter that its function runs in; empty: the
    pilot's own."""

    env: dict[str, str] = {}
    python: str = ""


NOTHING_LOADED: Final = ReadySoftware()
