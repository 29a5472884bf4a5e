"""A scan of the documents of a kind, page by page, for stores that are asked in SQL."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

from mendflow.stores.contract import StoredDocument

SCAN_PAGE = 1000
S = TypeVar("S")


async def scan_pages(
    read: Callable[[S, str], Awaitable[list[StoredDocument]]], first: S, following: S, prefix: str
) -> AsyncIterator[StoredDocument]:
    """The documents whose ids begin with `prefix`, in the order of their ids. `read` runs a statement from an id on:
    `first` gives that id too, `following` only those after it."""
    statement, after = first, prefix
    while page := await read(statement, after):
        for document in page:
            if not document.id.startswith(prefix):
                return
            yield document
        statement, after = following, page[-1].id
