"""The types of recovery: exceptions, primitives, decisions.

An engine reports an exception to the exception service as an `ExceptionEvent`. Rules conclude an exlet from its
context, or nothing. An exlet is a flow of primitives, run as a separate case, and each primitive is an order to the
case that it mends. The conclusion and its result are a `Decision`."""

from enum import StrEnum
from typing import Final, Literal

import msgspec

from mendflow.core.model.faults import Fault
from mendflow.core.model.ids import CaseId, Instant, ItemId, JobId
from mendflow.core.model.principals import DEFAULT_PROJECT
from mendflow.core.model.values import Value


class ExceptionType(StrEnum):
    """The ten types, and selection: which worklet serves a call that leaves the choice to the rules."""

    CASE_PRE = "case-pre"  # a case is about to start
    CASE_POST = "case-post"  # a case is about to complete
    CASE_EXTERNAL = "case-external"  # somebody raised a trigger for a case
    ITEM_PRE = "item-pre"  # an item is about to be sent out
    ITEM_POST = "item-post"  # an item is about to complete
    ITEM_EXTERNAL = "item-external"
    TIMEOUT = "timeout"  # an item has reached its deadline, or one in parallel with it has
    ABORT = "abort"  # an attempt failed
    UNAVAILABLE = "unavailable"  # no pilot can take the item, ever or for too long
    VIOLATION = "violation"  # a running item violates a constraint
    SELECTION = "selection"


CASE_LEVEL: Final = frozenset({ExceptionType.CASE_PRE, ExceptionType.CASE_POST, ExceptionType.CASE_EXTERNAL})
"""For these types a rule set has one tree; for the others one per task."""


class Primitive(StrEnum):
    """The primitives. The first row is for items, cases and all cases; compensate is missing, because it is a call of
    worklets, which the engine has already."""

    SUSPEND = "suspend"
    CONTINUE = "continue"
    REMOVE = "remove"
    RESTART = "restart"  # the item, with its data as of its start
    COMPLETE = "force-complete"
    FAIL = "force-fail"  # its fault reaches the flow; with `throw: false` it is marked as failed and the next item runs
    WRITE = "write"  # write data into the case or the item
    RESTAGE = "re-stage"
    RESUBMIT = "re-submit"
    REPOLL = "re-poll"
    REREGISTER = "re-register"
    RETRY_LATER = "retry-later"  # wait in a retry level, then submit again
    UNWIND = "unwind"  # run the compensations of what the case has completed, last in, first out
    NOTIFY = "notify"  # notify the administrator


Target = Literal["item", "case", "all-cases", "ancestors"]


class ExceptionEvent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One exception, or a possible one, as an engine reports it. `id` is the same when it is reported again, and then
    the first decision stands. `facts` are what the engine knows better than the service: `case` (what the case is, and
    its items), and roots of the context: `fault` (in place of the event's own), `job`, `outcome`, `trigger`, `data`
    (what is said of the trigger), `measures`, `values`, `timed_out`, `pattern`. Others are refused. `own_words` are
    those of the item alone, as the element of its loop: they are no part of the cause."""

    id: str
    type: ExceptionType
    case: CaseId
    flow: str
    item: ItemId | None = None
    task: str = ""  # the item's name without loop iterations
    serial: int = 0
    engine: str = ""  # empty: the engine of this server
    facts: dict[str, Value] = {}
    fault: Fault | None = None
    job: JobId | None = None
    own_words: tuple[str, ...] = ()


class TestedRule(msgspec.Struct, frozen=True, omit_defaults=True):
    """A rule that was evaluated: whether it held, and the values that decided. An error counts as not held."""

    rule: int
    held: bool
    values: dict[str, Value] = {}
    error: str = ""


class RuleError(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A rule whose condition could not be evaluated, which counts as not held."""

    rules: str  # the rule set's name
    version: int
    type: ExceptionType
    task: str
    rule: int
    error: str


RETRYING: Final = "tried-again"
"""The result of a decision whose job was submitted again and has not ended yet."""
TOLD: Final = "told"
"""The result of a decision whose exlet has only told somebody: what it is about is as it was."""
REPAIRS_MAX: Final = 100
"""Rules may repair an item again and again. After this many exlets for one item its rules start none; people still
may."""

BY_HAND: Final = -1
"""The rule number of a repair that a person ordered."""


class Conclusion(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The conclusion of a rule set: the exlet (or worklet) of the last rule that held, and the trail."""

    rules: str  # the rule set's name
    version: int
    type: ExceptionType
    task: str  # the tree's: a task's name, `*` for all tasks, empty at case level
    rule: int
    exlet: str
    trail: tuple[TestedRule, ...] = ()
    others: int = 0  # further rules that did not hold and are not in the trail; the tree shows which
    passive: bool = False  # decided by a rule on trial: recorded, but not carried out
    ordered_by: str = ""  # the person who ordered it, if no rule concluded it


Handling = Literal["waiting", "unhandled", "run-again", "settled", "rejected", "told", "handled"]
"""Who has taken up a failure. waiting: a person is asked. unhandled: no rule did, and nobody has run the case again.
run-again: no rule did, and somebody has run the case again since. settled: no rule did, and the case has completed all
the same, or was cancelled. rejected: it is a person's decision, who has rejected a user task. told: a person was told,
and nothing else was done. handled: a rule, a person's choice, or another try."""

DecisionState = Literal["running", "done", "failed", "passive", "ignored", "rejected", "waiting"]
"""running: its exlet runs. done, failed: the exlet has ended so. passive: a rule on trial would have acted. ignored: no
rule held. rejected: a person rejected it, and another took its place. waiting: an unexpected exception waits for a
person to provide an exlet."""


class AdministrationRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a person is asked to handle: who asks, in which scenario, and what is suggested. The decision that has it
    says what came of it. `rejection` is `open` while somebody says that the choice was wrong without knowing the right
    one, and `answered` once an author has taken that up."""

    asked_by: str  # a person, or `mendflow` where a rule was missing
    asked_at: Instant
    scenario: str
    suggestion: str = ""
    rejection: Literal["", "open", "answered"] = ""


class Decision(msgspec.Struct, kw_only=True):
    """A document: an exception, its context, the conclusion, and the result."""

    id: str  # the event's
    case: CaseId
    flow: str
    type: ExceptionType
    at: Instant
    state: DecisionState
    failed_at: Instant = 0  # of one that took the place of another: when the first of them was made
    item: ItemId | None = None
    task: str = ""
    serial: int = 0
    engine: str = ""
    project: str = DEFAULT_PROJECT  # that of the case
    job: JobId | None = None
    fault: Fault | None = None
    caught: bool = False  # its flow has a handler for the fault, and goes on after it
    tolerated: bool = False  # a loop lets it fail; if too much of the loop fails, its case does
    signature: str = ""  # equal for failures of the same cause
    exlet: str = ""
    exlet_case: CaseId | None = None
    conclusion: Conclusion | None = None
    trials: list[Conclusion] = []  # what rules on trial would have concluded
    errors: list[RuleError] = []  # rules whose conditions could not be evaluated
    context: dict[str, Value] = {}
    request: AdministrationRequest | None = None  # what a person was asked to handle
    taken_up_at: Instant = 0  # when it stopped waiting for a person
    taken_up_by: str = ""
    ended_at: Instant = 0
    settled_at: Instant = 0  # when the job that it tried again had ended
    result: str = ""  # what it came to, in a word: recovered, told, passed-on, completed, failed, removed, restarted
    steps: list[Primitive] = []  # the primitives that its exlet came to, each once
    note: str = ""
    tried: str = ""  # of what no rule takes up any more: what rules did about the same item before, in words
    replaced_by: str = ""  # the decision that replaced it when it was rejected
    tried_in: int = 0  # the reopening of its tree of cases that tries it again; it counts once that is made
    correction: Conclusion | None = None  # what will replace it, until it has
    released: bool = False  # what was held for it continues in parallel to the exlet
    safeguard: str = ""  # who holds the case until the repair has ended
    removes: bool = False  # its exlet removes whole cases, and is not stopped by that
    unwanted: str = ""  # why nothing is to be mended any more: a person has removed the item
    undone: list[str] = []  # the items that its exlet undoes, the last that completed first
    task_roles: list[str] | None = None  # of whoever ordered it: the roles whose user tasks it may end; None: any
