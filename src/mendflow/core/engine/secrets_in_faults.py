"""Values in the texts of faults, without those that are secret by their names.

The data of a case is shown with its secrets hidden. A fault is told more widely, in alerts and notifications, and its
text has no names by which a value could be hidden later: so it is where it is written."""

from collections.abc import Iterable, Iterator
from typing import Final

from mendflow.core.model.templates import Template
from mendflow.core.model.values import Value
from mendflow.core.recovery.redaction import is_secret_name

BEGINNING_CHARS: Final = 12
"""Of a long value a text may have only the beginning."""
SECRET_REASON: Final = "it cannot be worked out; the reason is hidden, as it has the value of something secret in it"


def quoted(value: Value, source: Template) -> str:
    """The value as a text has it, unless the expression or the name that it comes from names something secret."""
    return f"a {type(value).__name__} that is hidden" if is_secret_name(str(source)) else f"{value!r:.200}"


def without_secrets(told: str, source: Template, data: Iterable[Value]) -> str:
    """The reason why an expression failed, unless the expression names something secret and the reason has a secret of
    these data in it."""
    if not is_secret_name(str(source)):
        return told
    hides = any(text[:BEGINNING_CHARS] in told for each in data for text in _secrets_in(each))
    return SECRET_REASON if hides else told


def _secrets_in(value: Value, name: str = "") -> Iterator[str]:
    """The texts in a value whose names are those of secrets, as they stand and as they are quoted."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _secrets_in(each, key)
    elif isinstance(value, list):
        for each in value:
            yield from _secrets_in(each, name)
    elif isinstance(value, str) and value and is_secret_name(name):
        yield value
        yield repr(value)[1:-1]
