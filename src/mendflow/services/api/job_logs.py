"""The log of an attempt, from any byte on: of one that runs from its pilot, of one that is over from its stored file.

Who reads a long log reads on where the last part ended. So the streams that were read from last stay open, each with
the few bytes that it needs, and no log is ever unpacked twice for one reader, nor held in memory."""

import zlib
from collections import OrderedDict
from collections.abc import AsyncGenerator, Sequence
from typing import Final, NamedTuple

import msgspec

from mendflow.core.model.errors import NotFound
from mendflow.core.model.jobs import Attempt, Job, StoredLog
from mendflow.core.model.sync import LogPart
from mendflow.core.model.text_masks import TextMask
from mendflow.core.model.views import LogView
from mendflow.services.base.contracts import FileStore
from mendflow.services.cases.item_views import numbered_attempts
from mendflow.services.runtime.server import Server
from mendflow.services.scheduling.facts import FarWaits

PART_BYTES: Final = 1 << 20
OPEN_MAX: Final = 16
GZIP: Final = 16 + zlib.MAX_WBITS


class LogStream:
    """A stored log that is being read: `position` is that of the next byte, among those that are in the file."""

    def __init__(self, chunks: AsyncGenerator[bytes, None]) -> None:
        self._chunks = chunks
        self._packed = b""
        self._put_back = b""
        self._unpacker = zlib.decompressobj(GZIP)
        self.position = 0

    async def read(self, bytes_max: int) -> bytes:
        """So many bytes, fewer only at its end."""
        parts = [self._put_back[:bytes_max]]
        self._put_back = self._put_back[bytes_max:]
        missing = bytes_max - len(parts[0])
        while missing and (data := await self._unpack(missing)):
            parts.append(data)
            missing -= len(data)
        self.position += bytes_max - missing
        return b"".join(parts)

    def put_back(self, data: bytes) -> None:
        """The last bytes that were read are to be read again."""
        self._put_back = data + self._put_back
        self.position -= len(data)

    async def skip_to(self, position: int) -> None:
        while self.position < position and await self.read(min(PART_BYTES, position - self.position)):
            continue

    async def aclose(self) -> None:
        await self._chunks.aclose()

    async def _unpack(self, bytes_max: int) -> bytes:
        """The next bytes; none at its end."""
        while not self._unpacker.eof:
            data = self._unpacker.decompress(self._packed, bytes_max)
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
        """Bytes that were printed from `offset` on, without a gap, and where they begin: later, if those were left
        out. They end with whole characters and masked texts, except at the gap and at the end of the log."""
        gap_end = stored.left_out_at + stored.left_out_bytes
        if stored.left_out_at <= offset < gap_end:
            offset = gap_end
        if offset >= stored.bytes:
            return offset, b""
        before_gap = offset < gap_end
        run_end = stored.left_out_at if before_gap else stored.bytes
        position = offset if before_gap else offset - stored.left_out_bytes
        stream = self._open.pop((stored.file.sha256, position), None)
        if stream is None:
            stream = LogStream(self._file_store.read(stored.file.sha256))
        try:
            await stream.skip_to(position)
            data = await stream.read(min(PART_BYTES, run_end - offset))
        except BaseException:
            await stream.aclose()
            raise
        if offset + len(data) < run_end:
            whole = _whole_texts(data, mask) or len(data)
            stream.put_back(data[whole:])
            data = data[:whole]
        await self._keep_open(stored, stream, over=not data or offset + len(data) >= stored.bytes)
        return offset, data

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
            return _tail_view(job, 0, tail, offset, over=job.finished)
        if not chosen.attempt.end:
            return await self._live(chosen, offset)
        if chosen.attempt.log is not None:
            try:
                start, data = await self._stored.read(chosen.attempt.log, offset, self._mask(chosen.job))
                return self._view(chosen, start, data, chosen.attempt.log.bytes, over=True)
            except NotFound:
                pass  # somebody has removed the file: the end of the log is in the job's document
        return _tail_view(chosen.job, chosen.number, _tail(chosen), offset, over=True, attempt=chosen.attempt)

    async def _live(self, chosen: _Chosen, offset: int) -> LogView:
        """A pilot that does not answer has told the end of the log, which is all there is of it then."""
        meta = self._server.runtime.meta
        part = await meta.read_log(chosen.job.id, offset)
        if part is not None:
            data = _live_part(part, self._mask(chosen.job))
            return self._view(chosen, part.offset, data, part.size, over=False)
        tail = meta.log_tail(chosen.job.id) if not offset else ""
        view = _tail_view(chosen.job, chosen.number, tail, 0, over=False, attempt=chosen.attempt)
        return msgspec.structs.replace(view, offset=offset, next=offset, silent=True)

    def _mask(self, job: Job) -> TextMask:
        return self._server.hidden.of(job.spec.project)

    def _view(self, chosen: _Chosen, start: int, data: bytes, size: int, *, over: bool) -> LogView:
        shown = self._mask(chosen.job).mask_bytes(data)
        text = shown.decode(errors="replace")
        return LogView(
            job=chosen.job.id,
            attempt=chosen.number,
            offset=start,
            text=text,
            data=b"" if text.encode() == shown else shown,
            next=start + len(data),
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


def _tail_view(job: Job, number: int, tail: str, offset: int, *, over: bool, attempt: Attempt | None = None) -> LogView:
    data = tail.encode(errors="replace")
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


def _live_part(part: LogPart, mask: TextMask) -> bytes:
    """What its pilot read, up to the end of a character or of a hidden text. Of one that is still being printed the
    rest comes later; of one whose rest was left out there is no more, so its beginning is all that can be told."""
    whole = _whole_texts(part.data, mask)
    more_is_printed = part.offset + len(part.data) < part.size
    return part.data if not whole and more_is_printed else part.data[:whole]


def _whole_texts(data: bytes, mask: TextMask) -> int:
    """How many bytes there are without the beginning of a character, or of a hidden text, at their end."""
    return mask.whole(data[: _whole_characters(data)])


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
