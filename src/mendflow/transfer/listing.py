"""Lists and hashes files of storage elements, in threads, for a server."""

import asyncio
import os
from collections.abc import Sequence

from mendflow.core.data.paths import place_below
from mendflow.core.data.protocols import LOCAL
from mendflow.core.model.data import StorageElement
from mendflow.transfer.addresses import address_of
from mendflow.transfer.element import ElementFile, StorageClient
from mendflow.transfer.errors import TransferFailed


async def list_files(element: StorageElement, prefix: str) -> Sequence[ElementFile]:
    """All files below a path of the element. A missing folder has no files, and is reported."""
    return await asyncio.to_thread(_list_files, element, prefix)


def _list_files(storage: StorageElement, prefix: str) -> Sequence[ElementFile]:
    element = StorageClient(storage)
    top = address_of(place_below(storage.url, prefix)) if prefix else element.root
    if top.protocol in LOCAL and not os.path.isdir(top.path):
        raise TransferFailed(f"the folder {top.path} is not there")
    return element.list(prefix)


async def digest_file(element: StorageElement, path: str) -> tuple[ElementFile, str]:
    """A file and its SHA-256. Raises TransferFailed also if it changed meanwhile."""
    return await asyncio.to_thread(_digest_file, element, path)


def _digest_file(storage: StorageElement, path: str) -> tuple[ElementFile, str]:
    element, url = StorageClient(storage), place_below(storage.url, path)
    before = element.stat(url)
    if before is None:
        raise TransferFailed(f"{path} is gone from {storage.name}")
    digest = element.digest(url)
    if element.stat(url) != before:
        raise TransferFailed(f"{path} changed while it was read from {storage.name}")
    return before, digest
