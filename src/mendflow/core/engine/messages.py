"""Commands, events and orders of the engine.

A command is a request; `decide` turns it into events or refuses it. An event is a fact from outside the case; the
journal holds only these, and `evolve` recomputes everything that follows, the same way each time. An order is what the
case wants from outside. Its id follows from the case's state, so issuing it twice is harmless. `now` is part of the
event, never read from a clock."""

from typing import Final, Literal, Union

import msgspec

from mendflow.core.model.faults import Fault
from mendflow.core.model.flow import Flow
from mendflow.core.model.ids import CaseId, Instant, ItemId
from mendflow.core.model.jobs import JobSpec, Outcome
from mendflow.core.model.repair import Primitive, Target
from mendflow.core.model.values import FileRef, Value


class EngineMessage(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", omit_defaults=True):
    pass


# Commands. `serial` is the item's number in its case, as in its order.


class StartCase(EngineMessage, frozen=True, tag="start-case"):
    """`later`: nothing starts before the following ContinueLater is answered with Proceed. `remember` names tasks whose
    completed items the case records, because somebody outside knows how to undo them; `*` is all."""

    case: CaseId
    flow: Flow
    inputs: dict[str, Value] = {}
    parent: CaseId | None = None
    later: bool = False
    remember: tuple[str, ...] = ()


class FinishItem(EngineMessage, frozen=True, tag="finish-item"):
    """A job, a task, a staging, a called case or an invoked partner has ended. Staging puts its files into
    `outcome.files`. Refused as stale if the item is not live."""

    serial: int
    outcome: Outcome


class FireTimer(EngineMessage, frozen=True, tag="fire-timer"):
    serial: int


class Deliver(EngineMessage, frozen=True, tag="deliver"):
    """A message for a channel. Kept until a receive takes it. `id` makes a repeated delivery harmless."""

    id: str
    channel: str
    value: Value = None
    correlation: Value = None


class Proceed(EngineMessage, frozen=True, tag="proceed"):
    """Continue a long piece of work that an earlier event interrupted to stay short."""

    serial: int


# Control. `by` identifies the exlet's step that sends the command: the same command by the same step counts once. A
# person's commands have none.


class Suspend(EngineMessage, frozen=True, tag="suspend"):
    """The case, or one of its items, makes no progress until it is resumed. Facts that arrive meanwhile are kept.
    `holder` is who suspends: several can, and it continues when all have released it. `by` is the step of an exlet that
    orders it; a person, whom `who` names, has none. So it is of all commands."""

    item: ItemId | None = None
    holder: str = ""
    by: str = ""
    who: str = ""


class Resume(EngineMessage, frozen=True, tag="resume"):
    """Release what `holder` holds. A person, who is no holder, releases all of them."""

    item: ItemId | None = None
    holder: str = ""
    by: str = ""
    who: str = ""


class Cancel(EngineMessage, frozen=True, tag="cancel"):
    """End the case without handlers (`remove`): its jobs are cancelled."""

    reason: str = ""
    by: str = ""
    who: str = ""


class RestartItem(EngineMessage, frozen=True, tag="restart-item"):
    """Run a live item again, with its data as of its start. `values` are only the values that changed; `level` is the
    retry level that it has waited in."""

    item: ItemId
    values: dict[str, Value] = {}
    level: int = 0
    by: str = ""


class ForceComplete(EngineMessage, frozen=True, tag="force-complete"):
    item: ItemId
    outputs: Value = None
    by: str = ""


class ForceFail(EngineMessage, frozen=True, tag="force-fail"):
    """End a live item as failed. The fault is thrown in the flow, unless `proceed`: then the item counts as failed, its
    links are true, and the flow continues; `jobs.NAME.failed` is true and `jobs.NAME.fault` says why."""

    item: ItemId
    fault: Fault
    proceed: bool = False
    by: str = ""


class RemoveItem(EngineMessage, frozen=True, tag="remove-item"):
    """End a live item as cancelled. Nothing more runs on its path: what would follow it in its sequence, loop or scope
    is skipped, outwards until there are parallel branches, which continue. `path` is set when it is taken; journals of
    earlier versions lack it, and there only the item itself is skipped."""

    item: ItemId
    path: bool = False
    by: str = ""
    reason: str = ""
    who: str = ""


class WriteData(EngineMessage, frozen=True, tag="write-data"):
    """Write values into the case (its inputs, variables of the flow, or new ones), or into a live item: a task's data,
    a function's keyword arguments, a command's environment, a call's inputs, sources of staged files. Names may be
    paths: `order.rows[0]`. It takes effect at once, also while the case or the item is suspended.

    An item's order changes under the same serial. `held` means that it has not been sent: then the values are part of
    the item's data at its start. Otherwise a restart drops them. `serial` means that the answer to this order is held:
    the values are written into its outputs, and count as soon as the item completes."""

    values: dict[str, Value]
    item: ItemId | None = None
    held: bool = False
    serial: int = 0
    by: str = ""


class MarkCompensated(EngineMessage, frozen=True, tag="mark-compensated"):
    """These completed activities were undone from outside the case, or are about to be: the numbers are those of
    `compensations`. Nobody undoes them again, the flow's own handlers included."""

    numbers: tuple[int, ...]
    by: str = ""


Command = Union[
    StartCase,
    FinishItem,
    FireTimer,
    Deliver,
    Proceed,
    Suspend,
    Resume,
    Cancel,
    RestartItem,
    ForceComplete,
    ForceFail,
    RemoveItem,
    WriteData,
    MarkCompensated,
]


class CaseMoved(EngineMessage, frozen=True, tag="moved"):
    """Another server owns the case from here on. The case ignores it: the entry takes the position in the journal that
    the previous server would have written next."""

    server: str


class CaseReopened(EngineMessage, frozen=True, tag="reopened"):
    """A case that had failed goes on from where it stood. `void` are the places in the journal of what counts no more:
    the failures that it ended by, those of earlier reopenings among them. The state before this fact is what all others
    give without them. `restarted` are items that were cancelled when the case ended: they begin again, under new
    serials. A failed job keeps its serial, and waits there to be mended. `by` is who wished it."""

    void: tuple[int, ...]
    restarted: tuple[ItemId, ...] = ()
    by: str = ""


Fact = Union[Command, CaseMoved, CaseReopened]


NOT_CUT: Final = 0
CUT_WHEN_LONG: Final = -1
CUT_AT_ONCE: Final = 1


class Event(msgspec.Struct, frozen=True, omit_defaults=True):
    """A fact, mostly a command that was taken, and when. The journal is a list of these. `cut` is the step before which
    its work was cut, and the rest left to ContinueLater; NOT_CUT: all of it was done. An event that is applied for the
    first time is cut when it gets long."""

    at: Instant
    fact: Fact
    cut: int = NOT_CUT


# Orders. `serial` names the item or the timer; with the case's id it identifies the order.


class SubmitJob(EngineMessage, frozen=True, tag="submit-job"):
    serial: int
    spec: JobSpec


class CancelJob(EngineMessage, frozen=True, tag="cancel-job"):
    """`reason` is given by the person who removed it; also for tasks and called cases."""

    serial: int
    reason: str = ""


class SuspendJob(EngineMessage, frozen=True, tag="suspend-job"):
    serial: int


class ResumeJob(EngineMessage, frozen=True, tag="resume-job"):
    serial: int


class StageFiles(EngineMessage, frozen=True, tag="stage-files"):
    """Store given files on the server, then FinishItem with them. `files` maps a name to a path or URL, `data` to a
    value whose JSON is stored."""

    serial: int
    item: ItemId
    files: dict[str, str]
    order: Literal["parallel", "sequence"] = "parallel"
    data: dict[str, Value] = {}


class OfferTask(EngineMessage, frozen=True, tag="offer-task"):
    serial: int
    item: ItemId
    role: str
    title: str
    description: str = ""
    data: Value = None
    fields: dict[str, str] = {}
    deadline: Instant = 0


class WithdrawTask(EngineMessage, frozen=True, tag="withdraw-task"):
    serial: int
    reason: str = ""


class SetTimer(EngineMessage, frozen=True, tag="set-timer"):
    serial: int
    at: Instant


class DropTimer(EngineMessage, frozen=True, tag="drop-timer"):
    serial: int


class StartCalledCase(EngineMessage, frozen=True, tag="start-called"):
    """Start a called flow as a separate case. `flow` is the embedded flow, else None and `name` is used."""

    serial: int
    item: ItemId
    name: str
    flow: Flow | None = None
    inputs: dict[str, Value] = {}
    domain: str = ""


class CancelCalledCase(EngineMessage, frozen=True, tag="cancel-called"):
    serial: int
    reason: str = ""


class CallPartner(EngineMessage, frozen=True, tag="call-partner"):
    """In XML, `partner` is the partner link, `value` a message, `port_type` its port type, and `reference` its service
    reference. FinishItem then brings a message in `outcome.outputs`, or nothing when the operation is one-way and the
    partner has taken it; `wants_answer` is true for both."""

    serial: int
    item: ItemId
    partner: str
    operation: str
    value: Value = None
    wants_answer: bool = False
    port_type: str = ""
    reference: Value = None


class SendReply(EngineMessage, frozen=True, tag="send-reply"):
    """`message` is the id of the answered message. In XML the value is a message of a WSDL, and `message_type` its
    name."""

    serial: int
    message: str
    channel: str
    value: Value = None
    fault: str = ""
    message_type: str = ""


class RunPrimitive(EngineMessage, frozen=True, tag="do-mend"):
    """Apply a primitive of this exlet to the case that it mends; then FinishItem. `about` is an item of that case, if
    not the one at hand."""

    serial: int
    item: ItemId
    do: Primitive
    target: Target = "item"
    about: str = ""
    settings: dict[str, Value] = {}


class RunStyleSheet(EngineMessage, frozen=True, tag="transform"):
    """Run one of the flow's style sheets on a document, then FinishItem with `{"result": value}` as outputs."""

    serial: int
    item: ItemId
    sheet: str
    source: str
    params: tuple[tuple[str, Value], ...] = ()


class ContinueLater(EngineMessage, frozen=True, tag="go-on"):
    """Send the command Proceed back, soon."""

    serial: int


class ListenerAdded(EngineMessage, frozen=True, tag="listens"):
    """Information only: in a flow with XML, somebody listens to the channel from now on, or with other correlations."""

    channel: str


class ItemSkipped(EngineMessage, frozen=True, tag="item-skipped"):
    """Information only: an activity will not run, or was `cancelled` without an outstanding order. `serial` is that of
    an order that was answered: the answer was kept while the item or its case was suspended, and is not used."""

    item: ItemId
    name: str
    kind: str
    reason: str
    cancelled: bool = False
    serial: int = 0
    element: str = ""


class ItemFailed(EngineMessage, frozen=True, tag="item-failed"):
    """Information only: an activity failed before it issued an order, so no other message reports it (`early`); or the
    files of a job did not come, or it was made to fail and the flow continues."""

    item: ItemId
    name: str
    kind: str
    fault: Fault
    early: bool = False
    element: str = ""


class ItemDone(EngineMessage, frozen=True, tag="item-done"):
    """Information only: something ended that no other message reports. With a `fault` it failed."""

    item: ItemId
    name: str
    kind: str
    outputs: Value = None
    fault: Fault | None = None


class ItemEnded(EngineMessage, frozen=True, tag="item-ended"):
    """For information, never owed: an item was ended from outside while its order was out, and counts as this whatever
    becomes of what it had asked for. `is_reported`: an ItemFailed, given before, counts it already."""

    serial: int
    item: ItemId
    name: str
    kind: str
    state: Literal["completed", "failed", "cancelled"]
    outputs: Value = None
    fault: Fault | None = None
    reason: str = ""
    by: str = ""
    is_reported: bool = False
    element: str = ""


class EndCase(EngineMessage, frozen=True, tag="end-case"):
    """The case has ended; notify whoever waits."""

    status: Literal["completed", "failed", "cancelled"]
    outputs: dict[str, Value] = {}
    fault: Fault | None = None


Order = Union[
    SubmitJob,
    CancelJob,
    SuspendJob,
    ResumeJob,
    StageFiles,
    OfferTask,
    WithdrawTask,
    SetTimer,
    DropTimer,
    StartCalledCase,
    CancelCalledCase,
    CallPartner,
    SendReply,
    RunPrimitive,
    RunStyleSheet,
    ContinueLater,
    ListenerAdded,
    ItemSkipped,
    ItemFailed,
    ItemDone,
    ItemEnded,
    EndCase,
]

STAGED_FILE_FAULT = "stagingFailed"

URL_NOT_STAGED = (
    "a URL is not stored, because servers fetch nothing: say with `to:` where a pilot is to copy it, or"
    " give it to the job that needs it, under `inputs`"
)
"""The problem of a `stage` with a URL and no target."""


def staging_outcome(files: dict[str, FileRef]) -> Outcome:
    """The outcome of a successful staging."""
    return Outcome(files=files)
