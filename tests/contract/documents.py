"""A few words for tests about documents."""

import json
from collections.abc import Sequence

from mendflow.core.model.values import Value
from mendflow.stores.contract import Put, Store, StoredDocument, Write, WriteConflict, WriteDone


def body(value: Value) -> bytes:
    return json.dumps(value).encode()


def ids(documents: Sequence[StoredDocument]) -> list[str]:
    return [document.id for document in documents]


async def put(store: Store, id: str, value: bytes = b"1", expected: int = 0, *, kind: str = "job") -> int:
    """Write a document that is expected to be written; its version then."""
    return await done(store, Put(kind, id, value, expected))


async def done(store: Store, write: Write) -> int:
    """Write what is expected to be written; the version then."""
    (made,) = await store.write([write])
    assert isinstance(made, WriteDone), made
    return made.version


def outcomes(made: Sequence[WriteDone | WriteConflict]) -> list[str]:
    return [type(each).__name__ for each in made]
