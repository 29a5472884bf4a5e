"""Data sets: files that belong together, and the cases that they start.

A set is a journal of facts, as a case is: which files came, which batches were made of them, which case each batch
became, and that it was closed. Nothing here is said twice: whoever appends has read all that is before."""

from typing import Literal

import msgspec

from mendflow.core.model.ids import CaseId, Instant
from mendflow.core.model.values import FileRef, Value
from mendflow.core.model.views import View

BatchStatus = Literal["waiting", "running", "completed", "failed", "cancelled"]
BatchReason = Literal["count", "size", "time", "closed"]


class Gathering(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What follows from the files of a set: a case of `flow` for each batch. A batch is made as soon as `count` files,
    or `size_bytes`, are waiting; at the latest `wait_ms` after the first of them came; and of what is left when the
    set is closed. With none of these, there is one batch, when the set is closed. `inputs` are those of the flow;
    expressions in them see `file` (the first), `files`, `set`, and `batch` with its `name` and `number`."""

    name: str
    flow: str
    inputs: dict[str, Value] = {}
    count: int = 0
    size_bytes: int = 0
    wait_ms: int = 0


class DataSetSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What a set is to be. With `after`, it is closed by itself as soon as those sets are closed and all that they
    started has completed."""

    name: str
    gatherings: tuple[Gathering, ...] = ()
    after: tuple[str, ...] = ()


class FolderWatch(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A folder of a storage element that is looked at now and then. A file below `prefix` whose path there `match`
    matches belongs to `data_set` as soon as it has not changed for `stable_ms`. Its logical name is what the element's
    rules make of its path."""

    name: str
    element: str
    data_set: str
    prefix: str = ""
    match: str = "*"
    every_ms: int = 10_000
    stable_ms: int = 10_000
    owner: str = ""


class _Fact(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", omit_defaults=True):
    """Something that happened to a set."""


class SetDefined(_Fact, frozen=True, tag="defined"):
    """From here on the set has these gatherings. One that it had before, by its name, goes on where it was."""

    gatherings: tuple[Gathering, ...] = ()
    after: tuple[str, ...] = ()
    by: str = ""


class FilesAdded(_Fact, frozen=True, tag="came"):
    files: tuple[FileRef, ...]


class LateFilesAdded(_Fact, frozen=True, tag="late"):
    """Files that came after the set was closed: they belong to it, and nothing follows from them."""

    files: tuple[FileRef, ...]


class BatchMade(_Fact, frozen=True, tag="made"):
    """A batch of the oldest `files` of those that waited in a gathering."""

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
    """A batch whose case did not complete is to have another."""

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
    """A batch and the case that it became. `problem` says why it has no case yet."""

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
    """`rule` says when a batch is made, in words; `due_at` is when one is made though not enough has come."""

    name: str
    flow: str
    rule: str
    wish: Gathering
    waiting_files: int = 0
    waiting_bytes: int = 0
    due_at: Instant = 0
    batches: dict[str, int] = {}  # by status


class DataSetView(View, frozen=True):
    """`state` is open, closed (what it started goes on), or over. `waits_for` says what keeps it from the next."""

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
    """`known` files are in the set; `unsettled` ones may still change; `left_out` counts those that cannot be taken in
    as they are, also because the set has another content by their name. `problem` says why, or why nothing was seen."""

    watch: FolderWatch
    looked_at: Instant = 0
    known: int = 0
    unsettled: int = 0
    left_out: int = 0
    problem: str = ""
