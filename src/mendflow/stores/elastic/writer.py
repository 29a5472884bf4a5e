"""The writer: sends everything that is queued as one request; each write gets its own answer.

While a request is in progress the next one is collected. A request has at most one write per item, because the second
must know the result of the first; a call whose next write is to such an item waits with all that follow, so that the
writes of a call are tried in order. Nothing is read before it is written: the expected version is itself the condition.
The writer looks only after a refusal, or to append to a stream that it does not know."""

import asyncio
import secrets
import time
from collections.abc import Sequence
from copy import copy

from mendflow.core.model.errors import StoreUnavailable
from mendflow.stores.contract import Append, ConditionalWrite, WriteConflict, WriteDone
from mendflow.stores.elastic.http import PASSING, ClusterRetries, unavailable
from mendflow.stores.elastic.items import IndexedItem, ItemIndex, ItemResult
from mendflow.stores.elastic.streams import StreamIndex
from mendflow.stores.elastic.write_attempts import LastSeen, WriteAttempt
from mendflow.stores.fields import BadDocument

WriteOutcomes = list[WriteDone | WriteConflict]

REQUEST_WRITES_MAX = 2000
REQUEST_BYTES_MAX = 8 << 20
REMEMBERED_MAX = 50_000
TRIES_WITHOUT_REST = 2
CONFLICT = 409
NOT_TO_BE_STORED = (400, 413)


class LastSeenItems:
    """What was last seen of items, so that a write can record what came before it. It decides nothing."""

    def __init__(self) -> None:
        self._known: dict[str, LastSeen] = {}

    def of(self, id: str) -> LastSeen | None:
        return self._known.get(id)

    def keep(self, id: str, known: LastSeen) -> None:
        if len(self._known) >= REMEMBERED_MAX:
            self._known.clear()
        self._known[id] = known

    def record(self, item: IndexedItem) -> None:
        self.keep(item.id, LastSeen(item.version, item.mark, item.past))


class WriterCall:
    """The writes of one caller; the first `sent` of them have been in a request."""

    def __init__(self, tries: list[WriteAttempt]) -> None:
        self.tries = tries
        self.sent = 0
        self.answer: asyncio.Future[WriteOutcomes] = asyncio.get_running_loop().create_future()

    def resolve(self, trouble: Exception | None) -> None:
        if self.answer.done():
            return  # the caller has gone
        outcomes = [each.outcome for each in self.tries if each.outcome is not None]
        if len(outcomes) == len(self.tries):
            self.answer.set_result(outcomes)
        elif isinstance(trouble, (StoreUnavailable, BadDocument)):
            # Each gets its own: an exception that several raise would collect the tracebacks of all.
            self.answer.set_exception(copy(trouble))
        elif trouble is not None:
            self.answer.set_exception(trouble)


class ElasticWriter:
    def __init__(self, item_index: ItemIndex, streams: StreamIndex, memory: LastSeenItems) -> None:
        self._item_index = item_index
        self._streams = streams
        self._memory = memory
        self._name = secrets.token_hex(8)
        self._written = 0
        self._calls: list[WriterCall] = []
        self._task: asyncio.Task[None] | None = None

    def put(self, writes: Sequence[ConditionalWrite]) -> "asyncio.Future[WriteOutcomes]":
        """Raises BadDocument before anything of the call is sent."""
        now_ms = int(time.time() * 1000)
        call = WriterCall([WriteAttempt(write, self._mark(), now_ms) for write in writes])
        self._calls.append(call)
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="elastic-writer")
        return call.answer

    async def finish(self) -> None:
        """Returns when all queued writes are answered."""
        while self._task is not None:
            await asyncio.wait([self._task])

    def _mark(self) -> str:
        self._written += 1
        return f"{self._name}-{self._written:x}"

    async def _run(self) -> None:
        await asyncio.sleep(0)  # callers that write in this iteration of the loop join
        while self._calls:
            calls, tries = self._next()
            trouble: Exception | None = None
            try:
                await self._send(tries)
            except Exception as error:  # noqa: BLE001 - whoever waits must hear of anything
                trouble = error
            over = {call for call in calls if trouble is not None or call.sent == len(call.tries)}
            self._calls = [call for call in self._calls if call not in over]
            for call in over:
                call.resolve(trouble)
            await asyncio.sleep(0)  # the callers run now, and their next writes join
        self._task = None

    def _next(self) -> tuple[list[WriterCall], list[WriteAttempt]]:
        """The next request, and the calls that are part of it."""
        calls: list[WriterCall] = []
        tries: list[WriteAttempt] = []
        keys: set[str] = set()
        size = 0
        for call in self._calls:
            start = call.sent
            for each in call.tries[start:]:
                if len(tries) >= REQUEST_WRITES_MAX or size > REQUEST_BYTES_MAX or _key(each) in keys:
                    break
                keys.add(_key(each))
                tries.append(each)
                size += len(each.rest)
                call.sent += 1
            if call.sent > start:
                calls.append(call)
        return calls, tries

    async def _send(self, tries: list[WriteAttempt]) -> None:
        """Send until each write has its outcome, or patience ends."""
        patience = self._item_index.http.patience()
        await self._look_first(tries, patience)
        while todo := [each for each in tries if each.outcome is None]:
            lines = [each.line(self._memory.of(each.id)) for each in todo]
            made, uncertain = await self._item_index.write(lines, patience)
            for each, result in zip(todo, made, strict=True):
                self._take(each, result, uncertain)
            await self._look([e for e, result in zip(todo, made, strict=True) if result.status == CONFLICT], patience)
            if any(each.outcome is None and each.tries > TRIES_WITHOUT_REST for each in todo):
                await patience.rest(next((result.trouble for result in made if result.trouble), "it is contended"))

    def _take(self, each: WriteAttempt, result: ItemResult, uncertain: bool) -> None:
        each.tries += 1
        if uncertain or result.status >= 500:
            each.mark_doubtful()
        if result.version:
            self._memory.keep(each.id, LastSeen(result.version, each.mark, each.past(self._memory.of(each.id))))
            each.done(result.version)
            if isinstance(each.write, Append):
                self._streams.record_end(each.write.stream, each.write.expected + len(each.write.entries))
        elif result.status in PASSING or result.status >= 500:
            each.tries += TRIES_WITHOUT_REST
        elif result.status in NOT_TO_BE_STORED:
            raise BadDocument(f"{each.id[:80]!r} cannot be stored: {result.trouble}")
        elif result.status != CONFLICT:
            what = (
                f"it refuses writes ({result.status}, {result.trouble}): check its indices and the space on its disks"
            )
            raise unavailable(self._item_index.http.address, what)

    async def _look_first(self, tries: list[WriteAttempt], patience: ClusterRetries) -> None:
        unknown = []
        for each in tries:
            if _has_entries(each) and self._streams.may_end_at(_stream(each), each.write.expected):
                each.at = 0
            if each.at is None:
                unknown.append(each)
        await self._look([each for each in unknown if not isinstance(each.write, Append)], patience)
        await self._look_for_ends([each for each in unknown if isinstance(each.write, Append)], patience)

    async def _look(self, tries: list[WriteAttempt], patience: ClusterRetries) -> None:
        """Let each write decide by the current item."""
        if not tries:
            return
        found = await self._item_index.fetch([each.id for each in tries], patience=patience)
        for each in tries:
            seen = found.get(each.id)
            if seen is not None:
                self._memory.record(seen)
            if isinstance(each.write, Append):
                each.at = seen.version if seen is not None and seen.mark == each.mark else None
            elif not each.judge(seen):
                raise unavailable(
                    self._item_index.http.address,
                    f"whether {each.id} was written is not known: the answer was lost, and others have written since."
                    " Read it again",
                )
        await self._look_for_ends([each for each in tries if each.at is None and each.outcome is None], patience)

    async def _look_for_ends(self, tries: list[WriteAttempt], patience: ClusterRetries) -> None:
        """For appends that do not know whether the stream ends where they start."""
        ends = await self._streams.ends([_stream(each) for each in tries], patience)
        for each in tries:
            end = ends[_stream(each)]
            if end == each.write.expected and _has_entries(each):
                end = await self._streams.settle(_stream(each), patience)
            if end != each.write.expected:
                each.mark_taken(end)
            elif _has_entries(each):
                each.at = 0
            else:
                each.done(0)


def _key(each: WriteAttempt) -> str:
    """What may appear only once in a request: a document, or a stream."""
    return f"::{each.write.stream}" if isinstance(each.write, Append) else each.id


def _stream(each: WriteAttempt) -> str:
    assert isinstance(each.write, Append)
    return each.write.stream


def _has_entries(each: WriteAttempt) -> bool:
    return isinstance(each.write, Append) and bool(each.write.entries)
