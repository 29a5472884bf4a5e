"""Data sets: files that belong together, and the cases that they start.

A set is a journal of facts, like a case: which files came, which batches were made of them, which case each batch
became, and that it was closed. No fact is recorded twice: a writer has read everything before it."""

from typing import Literal

import msgspec

from mendflow.core.model.ids import CaseId, Instant
from mendflow.core.model.values import FileRef, Value
from mendflow.core.model.views import View

BatchStatus = Literal["waiting", "running", "completed", "failed", "cancelled"]
BatchReason = Literal["count", "size", "time", "closed"]


class Gathering(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What happens with the files of a set: a case of `flow` for each batch. A batch is made as soon as `count` files
    or `size_bytes` are waiting; at the latest `wait_ms` after the first of them came; and of the rest when the set is
    closed. Without any of these, there is one batch, when the set is closed. `inputs` are those of the flow;
    expressions in them see `file` (the first), `files`, `set`, and `batch` with its `name` and `number`."""

    name: str
    flow: str
    inputs: dict[str, Value] = {}
    count: int = 0
    size_bytes: int = 0
    wait_ms: int = 0


class DataSetSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The definition of a set. With `after`, it is closed automatically as soon as those sets are closed and all their
    cases have completed."""

    name: str
    gatherings: tuple[Gathering, ...] = ()
    after: tuple[str, ...] = ()


class FolderWatch(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A folder of a storage element that is scanned regularly. A file below `prefix` whose path matches `match` is
    added to `data_set` once it has not changed for `stable_ms`. Its logical name follows from the element's rules."""

    name: str
    element: str
    data_set: str
    prefix: str = ""
    match: str = "*"
    every_ms: int = 10_000
    stable_ms: int = 10_000
    owner: str = ""


class _Fact(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", omit_defaults=True):
    """A fact about a set."""


class SetDefined(_Fact, frozen=True, tag="defined"):
    """From here on the set has these gatherings. One with the name of an earlier one continues it."""

    gatherings: tuple[Gathering, ...] = ()
    after: tuple[str, ...] = ()
    by: str = ""


class FilesAdded(_Fact, frozen=True, tag="came"):
    files: tuple[FileRef, ...]


class LateFilesAdded(_Fact, frozen=True, tag="late"):
    """Files that came after the set was closed: they belong to it, but start no case."""

    files: tuple[FileRef, ...]


class BatchMade(_Fact, frozen=True, tag="made"):
    """A batch of the oldest `files` that waited in a gathering."""

    gathering: str
    number: int
    files: int
    why: BatchReason


class BatchStarted(_Fact, frozen=True, tag="started"):
    gathering: str
    number: int
    attempt: int
    case: CaseId


class BatchEnded(_Fact, frozen=True, tag="ended"):
    gathering: str
    number: int
    attempt: int
    status: BatchStatus


class BatchRetried(_Fact, frozen=True, tag="again"):
    """A batch whose case did not complete gets another."""

    gathering: str
    number: int
    by: str = ""


class SetClosed(_Fact, frozen=True, tag="closed"):
    by: str = ""


SetFact = SetDefined | FilesAdded | LateFilesAdded | BatchMade | BatchStarted | BatchEnded | BatchRetried | SetClosed


class SetEvent(msgspec.Struct, frozen=True, omit_defaults=True):
    at: Instant
    fact: SetFact


class BatchView(View, frozen=True):
    """A batch and its case. `problem` says why it has no case yet."""

    gathering: str
    number: int
    flow: str
    files: int
    bytes: int
    why: BatchReason
    made_at: Instant
    status: BatchStatus
    attempt: int = 1
    case: CaseId = CaseId("")
    problem: str = ""


class GatheringView(View, frozen=True):
    """`rule` describes when a batch is made; `due_at` is when one is made although it is not full."""

    name: str
    flow: str
    rule: str
    wish: Gathering
    waiting_files: int = 0
    waiting_bytes: int = 0
    due_at: Instant = 0
    batches: dict[str, int] = {}  # by status


class DataSetView(View, frozen=True):
    """`state` is open, closed (its cases still run), or over. `waits_for` says what keeps it from the next state."""

    name: str
    state: Literal["open", "closed", "over"]
    files: int = 0
    bytes: int = 0
    late: int = 0
    after: list[str] = []
    gatherings: list[GatheringView] = []
    waits_for: list[str] = []
    made_at: Instant = 0
    closed_at: Instant = 0


class WatchView(View, frozen=True):
    """`known` files are in the set; `unsettled` ones may still change; `left_out` counts those that cannot be added,
    for instance because the set has other content under their name. `problem` says why, or why the scan failed. A watch
    with a `flow` is that of the flow's key `on`."""

    watch: FolderWatch
    looked_at: Instant = 0
    known: int = 0
    unsettled: int = 0
    left_out: int = 0
    problem: str = ""
    flow: str = ""
