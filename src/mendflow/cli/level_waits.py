"""Parses how long failed jobs wait in each retry level."""

import os
from collections.abc import Sequence
from typing import Final

from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.units import DURATION_EXAMPLES, duration_ms
from mendflow.wiring import DEFAULT_WAITS_MS

VARIABLE: Final = "MENDFLOW_LEVELS"


def level_waits(words: Sequence[str] = ()) -> tuple[int, ...]:
    """The given waits, else those of the variable, else the defaults."""
    texts = [*words] or [part for part in os.environ.get(VARIABLE, "").split(",") if part.strip()]
    return tuple(_wait(text.strip()) for text in texts) or DEFAULT_WAITS_MS


def _wait(text: str) -> int:
    found = duration_ms(text)
    if found is None:
        raise InvalidRequest(f"{text!r} is not a wait of a retry level; write it like {DURATION_EXAMPLES}")
    return found
