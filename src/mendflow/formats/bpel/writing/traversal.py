"""Finds everything of a kind in a part of a flow, at any depth."""

from collections.abc import Iterator
from typing import TypeVar

import msgspec

T = TypeVar("T")


def all_of(at: object, *kinds: type[T]) -> Iterator[T]:
    pending = [at]
    while pending:
        each = pending.pop()
        if isinstance(each, kinds):
            yield each
        if isinstance(each, msgspec.Struct):
            pending.extend(getattr(each, name) for name in each.__struct_fields__)
        elif isinstance(each, tuple | list):
            pending.extend(each)
        elif isinstance(each, dict):
            pending.extend(each.values())
