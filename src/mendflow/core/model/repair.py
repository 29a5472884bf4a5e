"""The words of repair: what can go wrong, what a repair may do about it, and what was decided.

An exception is told to the exception service as an `ExceptionEvent`. Rules conclude an exlet from its context, or
nothing. An exlet is a flow whose steps are primitives, run as a case of its own, and each primitive is an order to the
case that it mends. What was concluded, and what came of it, is a `Decision`."""

from enum import StrEnum
from typing import Final, Literal

import msgspec

from mendflow.core.model.faults import Fault
from mendflow.core.model.ids import CaseId, Instant, ItemId, JobId
from mendflow.core.model.values import Value


class ExceptionType(StrEnum):
    """The ten types, and selection: which worklet serves a call that leaves the choice to the rules."""

    CASE_PRE = "case-pre"  # a case is about to begin
    CASE_POST = "case-post"  # a case is about to complete
    CASE_EXTERNAL = "case-external"  # somebody says that something happened to a case
    ITEM_PRE = "item-pre"  # an item is about to go out
    ITEM_POST = "item-post"  # an item is about to complete
    ITEM_EXTERNAL = "item-external"
    TIMEOUT = "timeout"  # an item has reached its deadline, or one in parallel with it has
    ABORT = "abort"  # an attempt failed
    UNAVAILABLE = "unavailable"  # nobody can take the item, ever or for too long
    VIOLATION = "violation"  # a running item breaks a constraint
    SELECTION = "selection"


CASE_LEVEL: Final = frozenset({ExceptionType.CASE_PRE, ExceptionType.CASE_POST, ExceptionType.CASE_EXTERNAL})
"""Of these types a rule set has one tree; of the others one for each task."""


class Primitive(StrEnum):
    """What a step of an exlet can do. The first row is for items, cases and all cases; compensate is not among them,
    because it is a call of worklets, which the engine has already."""

    SUSPEND = "suspend"
    CONTINUE = "continue"
    REMOVE = "remove"
    RESTART = "restart"  # the item, with its data as at its start
    COMPLETE = "force-complete"
    FAIL = "force-fail"  # marked as failed and the next item runs; with `throw: true` its fault reaches the flow
    WRITE = "write"  # data back into the case or the item
    RESTAGE = "re-stage"
    RESUBMIT = "re-submit"
    REPOLL = "re-poll"
    REREGISTER = "re-register"
    RETRY_LATER = "retry-later"  # wait in a level, then submit again
    UNWIND = "unwind"  # run the compensations of what the case has completed, last in first out
    NOTIFY = "notify"  # tell the administrator


Target = Literal["item", "case", "all-cases", "ancestors"]


class ExceptionEvent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One exception, or the chance of one, as an engine tells it. `id` is the same when it is told again, and what was
    decided then is what is decided now. `facts` are the context's roots that the engine knows better than the service:
    `fault`, `job`, `outcome`, `trigger`, `measures`, `values`, `timed_out`."""

    id: str
    type: ExceptionType
    case: CaseId
    flow: str
    item: ItemId | None = None
    task: str = ""  # the item's name without the iterations of its loops
    serial: int = 0
    engine: str = ""  # empty: the engine of this very server
    facts: dict[str, Value] = {}
    fault: Fault | None = None
    job: JobId | None = None


class TestedRule(msgspec.Struct, frozen=True, omit_defaults=True):
    """A rule on the way to a conclusion: whether it held, and the values that decided. An error counts as not held."""

    rule: int
    held: bool
    values: dict[str, Value] = {}
    error: str = ""


BY_HAND: Final = -1
"""The number of the rule that a repair has which a person ordered and no rule concluded."""


class Conclusion(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a rule set concluded: the exlet (or worklet) of the last rule that held, and the way there."""

    rules: str  # the rule set's name
    version: int
    type: ExceptionType
    task: str  # the tree's: a task's name, `*` for all tasks, empty at case level
    rule: int
    exlet: str
    trail: tuple[TestedRule, ...] = ()
    others: int = 0  # further rules on the way that did not hold and have no line in the trail; the tree tells which
    passive: bool = False  # decided by a rule on trial: recorded, and nothing done
    ordered_by: str = ""  # the person who ordered it, where no rule concluded it


DecisionState = Literal["running", "done", "failed", "passive", "ignored", "rejected", "waiting"]
"""running: its exlet runs. done, failed: the exlet has ended so. passive: a rule on trial would have acted. ignored: no
rule held. rejected: somebody said that it was wrong, and another took its place. waiting: an unexpected exception
waits for a person to make its exlet."""


class Decision(msgspec.Struct, kw_only=True):
    """A document: an exception, what was concluded from which context, and what came of it."""

    id: str  # the event's
    case: CaseId
    flow: str
    type: ExceptionType
    at: Instant
    state: DecisionState
    item: ItemId | None = None
    task: str = ""
    serial: int = 0
    engine: str = ""
    job: JobId | None = None
    fault: Fault | None = None
    signature: str = ""  # the same for failures of the same cause
    exlet: str = ""
    exlet_case: CaseId | None = None
    conclusion: Conclusion | None = None
    trials: list[Conclusion] = []  # what rules on trial would have concluded
    context: dict[str, Value] = {}
    taken_up_at: Instant = 0  # when it no longer waited for a person
    ended_at: Instant = 0
    settled_at: Instant = 0  # when the job that it tried again had ended
    result: str = ""  # what it came to, in a word: recovered, passed-on, completed, failed, removed, restarted
    note: str = ""
    replaced_by: str = ""  # the decision that took its place when it was rejected
    correction: Conclusion | None = None  # what is to take its place, until it has
    released: bool = False  # what was held for it has gone on beside the exlet
    safeguard: str = ""  # who holds the case until the repair is over
    removes: bool = False  # its exlet removes whole cases, and is not stopped by that
