"""Expressions: one small interface, several languages.

An expression asks for names and gives a value. It cannot do anything else, whoever wrote it."""

from collections.abc import Callable

from mendflow.core.model.values import Value

Lookup = Callable[[str], Value]
"""Gives the value of a name, or raises KeyError. Names are roots (`inputs`, `item`, `total`), except that what jobs
left is asked for one by one, as `jobs.NAME`, and links as `links.NAME`, so that an expression costs what it touches
and not what the case holds. The KeyError may carry the known names as its second argument, for suggestions."""


class ExpressionError(Exception):
    """An expression that could not be compiled or evaluated, with the sentence that says why. `offset` is the place in
    the expression's text, where it is known."""

    def __init__(self, message: str, offset: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset
