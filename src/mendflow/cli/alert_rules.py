"""Parses the limits of alerts from `--alert NAME=VALUE`."""

from collections.abc import Sequence

import msgspec

from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.units import DURATION_EXAMPLES, duration_ms
from mendflow.wiring import MonitorSettings


def alert_rules(words: Sequence[str] = ()) -> MonitorSettings:
    """The default limits, with those that were given. A name that ends in `_ms` is a duration, given without that
    suffix."""
    names = {name.removesuffix("_ms").replace("_", "-"): name for name in MonitorSettings.__struct_fields__}
    changed: dict[str, int | float] = {}
    for text in words:
        word, equals, value = text.partition("=")
        name = names.get(word.strip())
        if not equals or name is None:
            raise InvalidRequest(f"--alert {text!r} is not known; write NAME=VALUE, NAME one of {', '.join(names)}")
        changed[name] = _value(name, word, value.strip())
    return msgspec.structs.replace(MonitorSettings(), **changed)


def _value(name: str, word: str, text: str) -> int | float:
    if name.endswith("_ms"):
        found = duration_ms(text)
        if not found:
            raise InvalidRequest(f"--alert {word}={text}: this is not a time; write it like {DURATION_EXAMPLES}")
        return found
    try:
        number = float(text) if name == "long_factor" else int(text)
    except ValueError:
        number = 0
    if not 1 <= number <= 1_000_000:
        raise InvalidRequest(f"--alert {word}={text}: write a number of 1 or more")
    return number
