"""A data set: decisions, and what follows from each fact.

The deciding functions return facts; `evolve` applies them. A file counts once, by its logical name, or by its content
if it has none; a batch takes the oldest waiting files and the next number. So the same facts give the same batches on
every server, and gathering and number identify a batch."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import msgspec

from mendflow.core.expressions import ExpressionError, resolve
from mendflow.core.model.data_sets import (
    BatchEnded,
    BatchMade,
    BatchReason,
    BatchRetried,
    BatchStarted,
    BatchStatus,
    DataSetSpec,
    FilesAdded,
    Gathering,
    LateFilesAdded,
    SetClosed,
    SetDefined,
    SetEvent,
    SetFact,
)
from mendflow.core.model.errors import Conflict, InvalidRequest, NotFound
from mendflow.core.model.ids import CaseId, Instant
from mendflow.core.model.references import made_up_reference
from mendflow.core.model.values import FileRef, Value

FILES_MAX: Final = 10_000
"""A batch never has more files than this: they are inputs of its case."""

_DEFAULTS: Final[dict[str, Value]] = {"files": "${{ files }}"}
_DEFAULTS_PER_FILE: Final[dict[str, Value]] = {"file": "${{ file }}"}


class PendingFile(msgspec.Struct, frozen=True):
    file: FileRef
    since: Instant


class FileBatch(msgspec.Struct, kw_only=True):
    """`rule` is the gathering as it was when the batch was made, so that its case is the same whenever it starts. The
    files of a completed batch are dropped here; the journal has them."""

    number: int
    rule: Gathering
    files: tuple[FileRef, ...]
    count: int
    bytes: int
    why: BatchReason
    made_at: Instant
    attempt: int = 1
    status: BatchStatus = "waiting"
    case: CaseId = CaseId("")
    earlier: CaseId = CaseId("")  # the case of the previous attempt

    @property
    def is_over(self) -> bool:
        return self.status not in ("waiting", "running")


class GatheringState(msgspec.Struct):
    """The waiting files of a gathering, oldest first, and its batches."""

    rule: Gathering
    waiting: list[PendingFile] = []
    batches: list[FileBatch] = []
    removed: bool = False

    def waiting_bytes(self) -> int:
        return sum(each.file.bytes for each in self.waiting)


class DataSet(msgspec.Struct, kw_only=True):
    name: str
    pools: dict[str, GatheringState] = {}
    files: dict[str, PendingFile] = {}  # by file identity
    bytes: int = 0
    late: int = 0
    after: tuple[str, ...] = ()
    owner: str = ""
    made_at: Instant = 0
    closed_at: Instant = 0

    @property
    def closed(self) -> bool:
        return self.closed_at > 0

    def batches(self) -> Iterator[FileBatch]:
        for pool in self.pools.values():
            yield from pool.batches

    @property
    def is_drained(self) -> bool:
        """Whether it is closed, no file waits, and all its cases have completed."""
        return self.closed and not any(_unfinished(self))

    def batch(self, gathering: str, number: int) -> FileBatch:
        pool = self.pools.get(gathering)
        if pool is None or not 1 <= number <= len(pool.batches):
            raise NotFound(
                f"data set {self.name} has no batch {gathering}/{number}; `mendflow data sets show` lists them"
            )
        return pool.batches[number - 1]


def identity(file: FileRef) -> str:
    """What identifies a file: a logical name never gets other content."""
    return file.logical or f"sha256:{file.sha256}"


# Applying facts


def evolve(state: DataSet, event: SetEvent) -> None:
    fact, at = event.fact, event.at
    state.made_at = state.made_at or at
    match fact:
        case SetDefined():
            _define(state, fact)
        case FilesAdded():
            for file in fact.files:
                _take_in(state, PendingFile(file, at))
        case LateFilesAdded():
            for file in fact.files:
                state.files[identity(file)] = PendingFile(file, at)
                state.late += 1
        case BatchMade():
            _make(state.pools[fact.gathering], fact, at)
        case BatchStarted():
            batch = state.batch(fact.gathering, fact.number)
            if batch.attempt == fact.attempt and batch.status == "waiting":
                batch.case, batch.status = fact.case, "running"
        case BatchEnded():
            batch = state.batch(fact.gathering, fact.number)
            if batch.attempt == fact.attempt and batch.status == "running":
                batch.status = fact.status
                batch.files = () if fact.status == "completed" else batch.files
        case BatchRetried():
            batch = state.batch(fact.gathering, fact.number)
            batch.attempt, batch.status, batch.earlier, batch.case = (
                batch.attempt + 1,
                "waiting",
                batch.case,
                CaseId(""),
            )
        case SetClosed():
            state.closed_at = at


def _define(state: DataSet, fact: SetDefined) -> None:
    state.after, state.owner = fact.after, fact.by
    for pool in state.pools.values():
        pool.removed = True
    for rule in fact.gatherings:
        known = state.pools.get(rule.name)
        if known is None:
            state.pools[rule.name] = GatheringState(rule, list(state.files.values()))
        else:
            known.rule, known.removed = rule, False
    for pool in state.pools.values():
        if pool.removed:
            pool.waiting = []


def _take_in(state: DataSet, waiting: PendingFile) -> None:
    state.files[identity(waiting.file)] = waiting
    state.bytes += waiting.file.bytes
    for pool in state.pools.values():
        if not pool.removed:
            pool.waiting.append(waiting)


def _make(pool: GatheringState, fact: BatchMade, at: Instant) -> None:
    assert fact.number == len(pool.batches) + 1, f"batch {fact.number} is not the next of {pool.rule.name}"
    files = tuple(each.file for each in pool.waiting[: fact.files])
    del pool.waiting[: fact.files]
    size = sum(file.bytes for file in files)
    pool.batches.append(
        FileBatch(
            number=fact.number,
            rule=pool.rule,
            files=files,
            count=len(files),
            bytes=size,
            why=fact.why,
            made_at=at,
        )
    )


# Decisions


def define_set(state: DataSet, wish: DataSetSpec, *, by: str) -> list[SetFact]:
    """No facts if the set is already defined so. Existing batches keep their files."""
    if state.closed:
        raise Conflict(f"data set {state.name} is closed; take another name for what is to come")
    rules = tuple(pool.rule for pool in state.pools.values() if not pool.removed)
    by_name = {rule.name: rule for rule in wish.gatherings}
    if state.made_at and state.after == wish.after and {rule.name: rule for rule in rules} == by_name:
        return []
    return [SetDefined(gatherings=wish.gatherings, after=wish.after, by=by)]


def add_files(state: DataSet, files: Iterable[FileRef]) -> list[SetFact]:
    """The facts for those files that are new: a file that is added twice counts once."""
    new = {identity(file): file for file in files if identity(file) not in state.files}
    if not new:
        return []
    return [LateFilesAdded(files=tuple(new.values())) if state.closed else FilesAdded(files=tuple(new.values()))]


def close_set(state: DataSet, *, by: str) -> list[SetFact]:
    return [] if state.closed else [SetClosed(by=by)]


def retry_batch(state: DataSet, gathering: str, number: int, *, by: str) -> list[SetFact]:
    batch = state.batch(gathering, number)
    if batch.status not in ("failed", "cancelled"):
        name = f"batch {gathering}/{number} of data set {state.name}"
        raise Conflict(f"{name} is {batch.status}; only one that failed can be tried again")
    return [BatchRetried(gathering=gathering, number=number, by=by)]


def batches_due(state: DataSet, now: Instant) -> list[SetFact]:
    """The batches to make now."""
    return [fact for pool in state.pools.values() if not pool.removed for fact in _batches_due(pool, state, now)]


def _batches_due(pool: GatheringState, state: DataSet, now: Instant) -> Iterator[BatchMade]:
    number, start = len(pool.batches) + 1, 0
    while start < len(pool.waiting):
        files, why = _next_batch(pool.rule, pool.waiting, start, closed=state.closed, now=now)
        if not files or why is None:
            return
        yield BatchMade(gathering=pool.rule.name, number=number, files=files, why=why)
        number, start = number + 1, start + files


def _next_batch(
    rule: Gathering, waiting: Sequence[PendingFile], start: int, *, closed: bool, now: Instant
) -> tuple[int, BatchReason | None]:
    """How many of the files from `start` on form the next batch, and why."""
    total = 0
    most = min(rule.count or FILES_MAX, FILES_MAX)
    for place in range(start, min(start + most, len(waiting))):
        total += waiting[place].file.bytes
        if rule.size_bytes and total >= rule.size_bytes:
            return place + 1 - start, "size"
    there = min(len(waiting) - start, most)
    if there == most:
        return there, "count"
    if closed:
        return there, "closed"
    late = rule.wait_ms > 0 and now >= waiting[start].since + rule.wait_ms
    return (there, "time") if late else (0, None)


def next_due(state: DataSet) -> Instant:
    """When a batch is made although it is not full; 0: never."""
    return min((at for pool in state.pools.values() if (at := due_at(pool))), default=0)


def due_at(pool: GatheringState) -> Instant:
    return pool.waiting[0].since + pool.rule.wait_ms if pool.waiting and pool.rule.wait_ms else 0


def may_close(state: DataSet, find: Callable[[str], DataSet | None]) -> bool:
    """Whether a set that depends on others should be closed, because no file can come any more."""
    return bool(state.after) and not state.closed and not any(waits_for(state, find))


def waits_for(state: DataSet, find: Callable[[str], DataSet | None]) -> Iterator[str]:
    """What keeps the set from closing by itself, or from being drained, one sentence each."""
    if not state.closed:
        for name in state.after:
            before = find(name)
            if before is None:
                yield f"data set {name} is not there yet"
            elif not before.closed:
                yield f"data set {name} is not closed yet"
            else:
                yield from _unfinished(before)
    else:
        yield from _unfinished(state)


def _unfinished(state: DataSet) -> Iterator[str]:
    for pool in state.pools.values():
        if pool.waiting:
            yield f"{len(pool.waiting)} files of data set {state.name} wait to be handed on by {pool.rule.name}"
        for batch in pool.batches:
            name = f"{pool.rule.name}/{batch.number}"
            if batch.status in ("failed", "cancelled"):
                yield (
                    f"case {batch.case} of data set {state.name} is {batch.status}:"
                    f" try it again with mendflow data sets retry {state.name} {name}"
                )
            elif batch.status != "completed":
                yield f"batch {name} of data set {state.name} is {batch.status}"


# From a batch to a case


def batch_key(state: DataSet, batch: FileBatch) -> str:
    """The key of the batch's case, so that it starts once. Names have no slash."""
    return f"set/{state.name}/{batch.rule.name}/{batch.number}/{batch.attempt}"


def set_of_batch_key(key: str) -> str:
    """The data set that started the case with this key, if any."""
    parts = key.split("/")
    return parts[1] if len(parts) == 5 and parts[0] == "set" else ""


def batch_inputs(state: DataSet, batch: FileBatch) -> dict[str, Value]:
    """The inputs of the batch's case. They do not depend on the attempt: what a case publishes again has the same name,
    and is the same file."""
    name = f"{state.name}-{batch.rule.name}-{batch.number}"
    files = [file.as_value() for file in batch.files]
    known: dict[str, Value] = {
        "file": files[0],
        "files": files,
        "set": state.name,
        "batch": {"name": name, "number": batch.number, "files": batch.count, "bytes": batch.bytes},
    }
    try:
        resolved = resolve(requested_inputs(batch.rule), known.__getitem__)
        if flaw := made_up_reference(resolved, files, batch.rule.inputs):
            raise ExpressionError(flaw)
    except ExpressionError as error:
        raise InvalidRequest(
            f"the inputs of gathering {batch.rule.name} of data set {state.name}: {error.message}"
        ) from error
    assert isinstance(resolved, dict)
    return resolved


def requested_inputs(rule: Gathering) -> dict[str, Value]:
    return rule.inputs or (_DEFAULTS_PER_FILE if rule.count == 1 else _DEFAULTS)
