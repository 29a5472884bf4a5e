"""The parameters that many requests share: how much of a list, which of its rows, and in which order.

A bound stands with the type, so a request over HTTP and a call in the same process are held to the same ones."""

from typing import Annotated, Any, NamedTuple

from msgspec import Meta

NUMBER_MAX = 2**53
"""The largest whole number that every reader of JSON reads exactly."""


class OneOf(NamedTuple):
    """The words that a text may be: those of a Literal or of an enum. The empty text stands for any of them."""

    words: Any


Limit = Annotated[int, Meta(ge=1, le=10_000, description="At most so many.")]
LongLimit = Annotated[int, Meta(ge=1, le=100_000, description="At most so many.")]
Offset = Annotated[int, Meta(ge=0, le=NUMBER_MAX, description="Pass over so many first.")]
Count = Annotated[int, Meta(ge=0, le=NUMBER_MAX)]
Condition = Annotated[str, Meta(description="A condition in CEL, such as `attempts > 2`.")]
Order = Annotated[str, Meta(description="A name; with `-` before it, from the greatest on.")]
AfterPage = Annotated[str, Meta(description="The header `Mendflow-Next` of the page before.")]
