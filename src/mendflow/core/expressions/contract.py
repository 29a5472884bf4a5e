"""Expressions: one small interface, several languages.

An expression reads names and returns a value. It has no side effects, whoever wrote it."""

from collections.abc import Callable

from mendflow.core.model.values import Value

Lookup = Callable[[str], Value]
"""Returns the value of a name, or raises KeyError. Names are roots (`inputs`, `item`, `total`), except that results of
jobs are read one by one, as `jobs.NAME`, and links as `links.NAME`, so that an expression costs what it uses and not
what the case holds. The KeyError may have the known names as its second argument, for suggestions."""


class ExpressionError(Exception):
    """An expression that could not be compiled or evaluated, with the reason. `offset` is the position in its text, if
    known."""

    def __init__(self, message: str, offset: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset
