"""Storage elements as a server looks into them, in threads: what lies there, and what it is."""

import asyncio
import os
from collections.abc import Sequence

from mendflow.core.data.paths import below
from mendflow.core.data.protocols import LOCAL
from mendflow.core.model.data import StorageElement
from mendflow.transfer.addresses import address_of
from mendflow.transfer.element import Element, Found
from mendflow.transfer.problems import TransferFailed


async def listed(element: StorageElement, prefix: str) -> Sequence[Found]:
    """All files below a path of the element. A folder that is not there has no files, and that is told."""
    return await asyncio.to_thread(_listed, element, prefix)


def _listed(storage: StorageElement, prefix: str) -> Sequence[Found]:
    element = Element(storage)
    top = address_of(below(storage.url, prefix)) if prefix else element.root
    if top.protocol in LOCAL and not os.path.isdir(top.path):
        raise TransferFailed(f"the folder {top.path} is not there")
    return element.list(prefix)


async def digested(element: StorageElement, path: str) -> tuple[Found, str]:
    """A file and its SHA-256. Raises TransferFailed also if it changed meanwhile."""
    return await asyncio.to_thread(_digested, element, path)


def _digested(storage: StorageElement, path: str) -> tuple[Found, str]:
    element, url = Element(storage), below(storage.url, path)
    before = element.stat(url)
    if before is None:
        raise TransferFailed(f"{path} is gone from {storage.name}")
    digest = element.digest(url)
    if element.stat(url) != before:
        raise TransferFailed(f"{path} changed while it was read from {storage.name}")
    return before, digest
