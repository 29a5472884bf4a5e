"""The log of an attempt, from any byte on: of one that runs from its pilot, of one that is over from its stored file.

Who reads a long log reads on where the last part ended. So the streams that were read from last stay open, and no log
is ever unpacked twice for one reader, nor held in memory as a whole.

Whoever reads from within a hidden text must not see the rest of it. So each part is masked together with what is before
it, as far as such a text may reach, and then cut. A stream keeps as much as the longest secret may reach, and not as
much as those reach that are known now: others may be known when it is read on.

A few bytes of a pilot can be gigabytes of log, and a pilot may say anything of a log. So a log is unpacked piece by
piece, and masked, in threads, at the cost of whoever reads it, and one request unpacks a bounded number of bytes."""

import zlib
from collections import OrderedDict
from collections.abc import AsyncGenerator, Sequence
from functools import partial
from typing import Final, NamedTuple

import msgspec

from mendflow.core.model.errors import NotFound, TooLarge
from mendflow.core.model.ids import JobId
from mendflow.core.model.jobs import Attempt, Job, StoredLog
from mendflow.core.model.secrets import VALUE_BYTES_MAX
from mendflow.core.model.sync import LOG_PART_BYTES, LogPart
from mendflow.core.model.text_masks import TextMask
from mendflow.core.model.views import LogView
from mendflow.services.base.contracts import FileStore
from mendflow.services.base.reading_cost import paid_thread
from mendflow.services.cases.item_views import numbered_attempts
from mendflow.services.runtime.server import Server
from mendflow.services.scheduling.facts import FarWaits

PART_BYTES: Final = 1 << 20
OPEN_MAX: Final = 16
GZIP: Final = 16 + zlib.MAX_WBITS
SKIPPED_BYTES_MAX: Final = 1 << 30
"""So many bytes one request goes past to where it reads: ten times what is kept of a log unless somebody asks for
more."""
BEHIND_BYTES: Final = 8 * VALUE_BYTES_MAX
"""So much of what is before its place a stream keeps: a secret that is quoted takes six bytes for one, and the ends of
lines an eighth of that."""


class LogStream:
    """A stored log that is being read: `position` is that of the next byte, among those that are in the file, and
    `behind` are the last before it."""

    def __init__(self, chunks: AsyncGenerator[bytes, None]) -> None:
        self._chunks = chunks
        self._packed = b""
        self._put_back = b""
        self._unpacker = zlib.decompressobj(GZIP)
        self.position = 0
        self.behind = b""

    async def read(self, bytes_max: int) -> bytes:
        """The next bytes, so many, fewer only at its end; `go_on` says how many of them are done with."""
        parts = [self._put_back[:bytes_max]]
        self._put_back = self._put_back[bytes_max:]
        missing = bytes_max - len(parts[0])
        while missing and (data := await self._unpack(missing)):
            parts.append(data)
            missing -= len(data)
        return b"".join(parts)

    def go_on(self, data: bytes, done: int) -> None:
        """Of these bytes, which were read last, the first are done with, and the rest is to be read again."""
        self._put_back = data[done:] + self._put_back
        self.behind = (self.behind + data[:done])[-BEHIND_BYTES:]
        self.position += done

    async def skip_to(self, position: int) -> None:
        if position - self.position > SKIPPED_BYTES_MAX:
            raise TooLarge(
                f"one request reads a log from at most {SKIPPED_BYTES_MAX} bytes after where the one before ended: read"
                " on from there"
            )
        while self.position < position and (data := await self.read(min(PART_BYTES, position - self.position))):
            self.go_on(data, len(data))

    async def aclose(self) -> None:
        await self._chunks.aclose()

    async def _unpack(self, bytes_max: int) -> bytes:
        """The next bytes; none at its end."""
        while not self._unpacker.eof:
            try:
                data = await paid_thread(partial(self._unpacker.decompress, self._packed, bytes_max))
            except zlib.error as error:
                raise NotFound(f"the stored log cannot be unpacked: {error}") from error
            self._packed = self._unpacker.unconsumed_tail
            if data:
                return data
            if not self._packed:
                self._packed = await anext(self._chunks, b"")
                if not self._packed:
                    break
        return b""


class StoredLogReader:
    def __init__(self, file_store: FileStore) -> None:
        self._file_store = file_store
        self._open: OrderedDict[tuple[str, int], LogStream] = OrderedDict()

    async def read(self, stored: StoredLog, offset: int, mask: TextMask) -> tuple[int, bytes]:
        """Bytes that were printed from `offset` on, without a gap, as they may be shown, and where they begin: later,
        if those were left out. They end with whole characters and masked texts, except at the gap and at the end of
        the log."""
        gap_end = stored.left_out_at + stored.left_out_bytes
        if stored.left_out_at <= offset < gap_end:
            offset = gap_end
        if offset >= stored.bytes:
            return offset, b""
        before_gap = offset < gap_end
        run_start, run_end = (0, stored.left_out_at) if before_gap else (gap_end, stored.bytes)
        position = offset if before_gap else offset - stored.left_out_bytes
        stream = self._open.pop((stored.file.sha256, position), None)
        if stream is None:
            stream = LogStream(self._file_store.read(stored.file.sha256))
        try:
            await stream.skip_to(position)
            unread = await stream.read(min(PART_BYTES, run_end - offset))
            if not unread:
                raise NotFound(f"the stored log ends before byte {offset}, and is said to have {stored.bytes}")
            skipped = min(len(stream.behind), mask.margin, offset - run_start)
            data = stream.behind[len(stream.behind) - skipped :] + unread
            is_end = offset + len(unread) >= stored.bytes
            shown = await paid_thread(partial(_shown_at_end if is_end else _shown, data, mask, skipped))
        except BaseException:
            await stream.aclose()
            raise
        stream.go_on(unread, len(shown))
        await self._keep_open(stored, stream, over=offset + len(shown) >= stored.bytes)
        return offset, shown

    async def _keep_open(self, stored: StoredLog, stream: LogStream, *, over: bool) -> None:
        """For who reads on, unless nothing is left to read."""
        if over:
            await stream.aclose()
            return
        same = self._open.pop((stored.file.sha256, stream.position), None)
        self._open[stored.file.sha256, stream.position] = stream
        if same is not None:
            await same.aclose()
        while len(self._open) > OPEN_MAX:
            _, oldest = self._open.popitem(last=False)
            await oldest.aclose()


class _Chosen(NamedTuple):
    """An attempt, the submission that it is of, and its number among those of all submissions."""

    job: Job
    attempt: Attempt
    number: int


class JobLogs:
    def __init__(self, server: Server) -> None:
        self._server = server
        self._stored = StoredLogReader(server.file_store)

    async def read(self, submissions: Sequence[Job], *, attempt: int = 0, offset: int = 0) -> LogView:
        """A part of the log of an attempt, of the last one unless it is given. `submissions` are those of one job."""
        view = await self._read(submissions, attempt=attempt, offset=offset)
        note = self._note(submissions[-1]) if not view.over else ""
        silent = view.silent and not note
        return msgspec.structs.replace(
            view, job=submissions[0].id, job_over=submissions[-1].finished, note=note, silent=silent
        )

    def _note(self, job: Job) -> str:
        far = self._server.runtime.hub.provider(FarWaits)
        return far.log_note(job.id) if far is not None and not job.finished else ""

    async def _read(self, submissions: Sequence[Job], *, attempt: int, offset: int) -> LogView:
        job = submissions[-1]
        chosen = _choose(submissions, attempt)
        if chosen is None:
            if attempt:
                raise NotFound(f"job {submissions[0].id} has no attempt {attempt}; {_attempts_text(submissions)}")
            tail = job.outcome.log_tail if job.outcome is not None else ""
            return _tail_view(job, 0, await self._masked(job, tail), offset, over=job.finished)
        if not chosen.attempt.end:
            return await self._live(chosen, offset)
        if chosen.attempt.log is not None:
            mask = await self._mask(job)
            try:
                start, shown = await self._stored.read(chosen.attempt.log, offset, mask)
                return self._view(chosen, start, shown, chosen.attempt.log.bytes, over=True)
            except NotFound:
                pass  # somebody has removed the file, or it is no such log: the end of the log is in the job's document
        end = await self._masked(job, _tail(chosen))
        return _tail_view(chosen.job, chosen.number, end, offset, over=True, attempt=chosen.attempt)

    async def _live(self, chosen: _Chosen, offset: int) -> LogView:
        """A pilot that does not answer has told the end of the log, which is all there is of it then."""
        meta, mask = self._server.runtime.meta, await self._mask(chosen.job)
        part = await self._live_part(chosen.job.id, offset, mask)
        if part is not None:
            skipped = max(0, offset - part.offset)
            is_end = part.offset + len(part.data) >= part.size
            shown = await paid_thread(partial(_shown, part.data, mask, skipped, more_comes=is_end))
            return self._view(chosen, part.offset + skipped, shown, max(part.size, offset), over=False)
        tail = mask.mask_bytes(meta.log_tail(chosen.job.id).encode(errors="replace")) if not offset else b""
        view = _tail_view(chosen.job, chosen.number, tail, 0, over=False, attempt=chosen.attempt)
        return msgspec.structs.replace(view, offset=offset, next=offset, silent=True)

    async def _masked(self, job: Job, tail: str) -> bytes:
        """The end of a log, of which a secret that was not known when its pilot told it is masked now."""
        return (await self._mask(job)).mask_bytes(tail.encode(errors="replace"))

    async def _live_part(self, id: JobId, offset: int, mask: TextMask) -> LogPart | None:
        """A part with what is at `offset`, and with what is before that, unless it was left out."""
        meta, begin = self._server.runtime.meta, max(0, offset - min(mask.margin, LOG_PART_BYTES // 2))
        part = await meta.read_log(id, begin)
        if part is None or (end := part.offset + len(part.data)) > offset or end >= part.size or begin == offset:
            return part
        return await meta.read_log(id, end)  # it was left out from there on

    async def _mask(self, job: Job) -> TextMask:
        return await self._server.hidden.current(job.spec.project)

    def _view(self, chosen: _Chosen, start: int, shown: bytes, size: int, *, over: bool) -> LogView:
        text = shown.decode(errors="replace")
        return LogView(
            job=chosen.job.id,
            attempt=chosen.number,
            offset=start,
            text=text,
            data=b"" if text.encode() == shown else shown,
            next=start + len(shown),
            size=size,
            over=over,
            host=chosen.attempt.host,
            folder=chosen.attempt.folder,
        )


def _choose(submissions: Sequence[Job], number: int) -> _Chosen | None:
    """The attempt of this number, or the last that was begun."""
    numbers = [each.number for each in numbered_attempts(submissions)]
    attempts = [(job, attempt) for job in submissions for attempt in job.history]
    found = [_Chosen(job, attempt, count) for (job, attempt), count in zip(attempts, numbers, strict=True)]
    if number:
        found = [each for each in found if each.number == number]
    begun = [each for each in found if each.attempt.end != "returned"]
    choice = begun or found
    return choice[-1] if choice else None


def _tail(chosen: _Chosen) -> str:
    """The end of the log of an attempt that is over, which is all of it unless it was stored."""
    job, attempt = chosen.job, chosen.attempt
    if job.outcome is not None and attempt is job.history[-1]:
        fault = job.outcome.fault
        return job.outcome.log_tail or (fault.log_tail if fault is not None else "")
    return attempt.fault.log_tail if attempt.fault is not None else ""


def _attempts_text(submissions: Sequence[Job]) -> str:
    numbers = sorted({each.number for each in numbered_attempts(submissions)})
    return f"there are {', '.join(map(str, numbers))}" if numbers else "nobody has begun it yet"


def _tail_view(
    job: Job, number: int, data: bytes, offset: int, *, over: bool, attempt: Attempt | None = None
) -> LogView:
    host, folder = (attempt.host, attempt.folder) if attempt is not None else ("", "")
    start = min(offset, len(data))
    return LogView(
        job=job.id,
        attempt=number,
        offset=start,
        text=data[start:].decode(errors="replace"),
        next=len(data),
        size=len(data),
        over=over,
        host=host,
        folder=folder,
    )


def _shown(data: bytes, mask: TextMask, skipped: int, *, more_comes: bool = False) -> bytes:
    """What may be shown of these bytes behind the first, up to the end of a character or of a hidden text: of one that
    is not whole the rest comes later. Of one whose rest was left out there is no more, so that its beginning is told:
    that of a character as it is, and that of a hidden text as stars."""
    masked = mask.mask_bytes(data)
    whole = _whole_texts(masked, mask)
    if more_comes or whole > skipped:
        return masked[skipped:whole]
    whole = mask.whole(masked)
    return (masked[:whole] + b"*" * (len(masked) - whole))[skipped:]


def _shown_at_end(data: bytes, mask: TextMask, skipped: int) -> bytes:
    return mask.mask_bytes(data)[skipped:]


def _whole_texts(masked: bytes, mask: TextMask) -> int:
    """How many masked bytes there are without the beginning of a character, or of a hidden text, at their end. What is
    not masked yet must not be asked for: the end of a hidden text may be the beginning of another one."""
    return mask.whole(masked[: _whole_characters(masked)])


def _whole_characters(data: bytes) -> int:
    """How many bytes there are without the beginning of a character at their end."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte < 0x80:
            break
        if byte >= 0xC0:
            wants = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return len(data) - back if wants > back else len(data)
    return len(data)
