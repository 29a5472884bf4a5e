"""How files go between the servers of two domains: each try goes on where the last broke off, so a file over a bad line
is sent about once. Its digest is checked when all of it is there. So many tries one after the other that bring nothing
are an end; whoever wants the file tries again later, and goes on there too."""

from collections.abc import AsyncIterator
from typing import Final

from mendflow.core.model.errors import TooLarge, Unreachable
from mendflow.core.model.values import FileRef
from mendflow.services.base.contracts import Clock, FileStore
from mendflow.services.domains.domain_lines import DomainLine

TRIES: Final = 3
RETRY_MS: Final = 200


async def give_file(line: DomainLine, sha256: str, *, files: FileStore, clock: Clock) -> None:
    """Give the host a file, unless it has it."""
    tries = before = 0
    while (offset := await line.missing_from(sha256)) is not None:
        tries = tries + 1 if offset <= before else 0
        before = offset
        try:
            await line.put_file(sha256, files.read(sha256, offset), offset)
            return
        except Unreachable:
            if tries >= TRIES:
                raise
        await clock.sleep(RETRY_MS << tries)


async def fetch_file(
    line: DomainLine, ref: FileRef, bytes_max: int, *, files: FileStore, clock: Clock, source: str
) -> FileRef:
    """Fetch a file from the host, no more of it than it may have."""
    tries = 0
    while True:
        offset = await files.part_bytes(ref.sha256, source)
        chunks = _bounded(line.get_file(ref.sha256, offset), ref, offset, bytes_max)
        try:
            return await files.keep_part(ref.name, chunks, sha256=ref.sha256, offset=offset, source=source)
        except Unreachable:
            tries = tries + 1 if await files.part_bytes(ref.sha256, source) <= offset else 0
            if tries >= TRIES:
                raise
        await clock.sleep(RETRY_MS << tries)


async def _bounded(chunks: AsyncIterator[bytes], ref: FileRef, offset: int, bytes_max: int) -> AsyncIterator[bytes]:
    got = offset
    async for chunk in chunks:
        got += len(chunk)
        if got > bytes_max:
            raise TooLarge(
                f"{ref.name[:100]!r} has more than the {bytes_max} bytes that it may have", bytes_max=bytes_max
            )
        yield chunk
