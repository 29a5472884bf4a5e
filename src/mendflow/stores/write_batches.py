"""Batches of writes that queue up while others are written, and which of them go next.

A caller queues a batch and awaits its answer; a store that takes several at once needs one commit for them."""

import asyncio
from collections.abc import Sequence

from mendflow.stores.contract import Append, Put, Write, WriteConflict, WriteDone

WriteOutcomes = list[WriteDone | WriteConflict]
WriteBatch = tuple[Sequence[Write], "asyncio.Future[WriteOutcomes]"]

GROUP_WRITES_MAX = 4096
GROUP_BYTES_MAX = 16_000_000
"""Both bound the time of one commit, and so how long the first of the group waits for the last."""


def take_group(gathered: list[WriteBatch]) -> tuple[list[WriteBatch], list[WriteBatch], int]:
    """The batches that go together, those that stay, and how many writes go. A batch is never split."""
    if len(gathered) == 1:
        return gathered, [], len(gathered[0][0])
    writes = size = 0
    for number, (batch, _) in enumerate(gathered, 1):
        writes += len(batch)
        size += sum(map(_bytes, batch))
        if writes >= GROUP_WRITES_MAX or size >= GROUP_BYTES_MAX:
            return gathered[:number], gathered[number:], writes
    return gathered, [], writes


def resolve(group: Sequence[WriteBatch], answers: Sequence[WriteOutcomes | Exception]) -> None:
    """Give each caller its own answer."""
    for (_, future), answer in zip(group, answers, strict=True):
        if future.done():
            continue  # the caller has gone
        if isinstance(answer, Exception):
            future.set_exception(answer)
        else:
            future.set_result(answer)


def _bytes(write: Write) -> int:
    if isinstance(write, Put):
        return len(write.body)
    return sum(map(len, write.entries)) if isinstance(write, Append) else 0
