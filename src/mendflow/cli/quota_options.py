"""Numbers of quotas as people write them."""

from collections.abc import Callable, Sequence
from typing import Any

from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.projects import Quotas
from mendflow.core.model.units import SIZE_EXAMPLES, size_bytes

NONE = "none"


def number_given(option: str, text: str, kind: Callable[[str], float]) -> float | str | None:
    """What is given: a number, `none`, or nothing."""
    if text in ("", NONE):
        return text or None
    try:
        return kind(text)
    except ValueError:
        raise InvalidRequest(f"{option} {text!r:.50} is no number; write one, or `none` for no bound") from None


def size_given(option: str, text: str) -> int | str | None:
    if text in ("", NONE):
        return text or None
    found = int(text) if text.isascii() and text.isdecimal() else size_bytes(text)
    if found is None:
        raise InvalidRequest(f"{option} {text!r:.50} is no size; write one like {SIZE_EXAMPLES}, or `none`")
    return found


def quotas_given(words: Sequence[str]) -> Quotas:
    """The values of `--quota NAME=N`."""
    found: dict[str, Any] = {}
    for word in words:
        name, _, text = word.partition("=")
        if name == "memory":
            found["memory_bytes"] = size_given(f"--quota {name}", text)
        elif name in ("running-jobs", "waiting-jobs", "cpus"):
            field = name.replace("-", "_")
            found[field] = number_given(f"--quota {name}", text, float if name == "cpus" else int)
        else:
            raise InvalidRequest(
                f"--quota {word!r:.50} is not understood; write running-jobs=N, cpus=N, memory=SIZE or waiting-jobs=N"
            )
    return Quotas(**{name: value for name, value in found.items() if value != NONE})
