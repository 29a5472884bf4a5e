"""What stores that are asked in SQL have in common: a scan page by page, and conditions that must all hold."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, TypeVar

from mendflow.stores.contract import FieldCondition, StoredDocument

SCAN_PAGE = 1000
_LAST_CHARACTER = "\U0010ffff"
Params = list[Any]
S = TypeVar("S")


async def scan_pages(
    read: Callable[[S, str, str], Awaitable[list[StoredDocument]]], first: S, following: S, prefix: str
) -> AsyncIterator[StoredDocument]:
    """The documents whose ids begin with `prefix`, in the order of their ids. `read` runs a statement from an id on, up
    to another: `first` gives that id too, `following` only those after it. What comes behind the prefix, which may be
    anybody's, is not read."""
    statement, after = first, prefix
    while page := await read(statement, after, prefix + _LAST_CHARACTER):
        for document in page:
            yield document
        statement, after = following, page[-1].id


def all_conditions(
    of_kind: str,
    kind: str,
    where: Sequence[FieldCondition],
    condition: Callable[[FieldCondition], tuple[str, Params]],
) -> tuple[str, Params]:
    """The text of all conditions on documents of a kind, and its parameters. `of_kind` is the condition on the kind,
    `condition` writes one of the others."""
    parts, params = [of_kind], Params((kind,))
    for each in where:
        part, more = condition(each)
        parts.append(part)
        params += more
    return " AND ".join(parts), params
