"""What goes into the engine and what comes out: commands, events, orders.

A command is a wish; `decide` turns it into events or refuses it. An event is a fact from outside the case that
happened, and is all that the journal holds: everything that follows from it, `evolve` works out again, the same way
each time. An order is what the case wants of the world. Its id is made of the case's own state, so giving the same
order twice is harmless. `now` is in the event, never read from a clock."""

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


# Commands. `serial` is the item's number in its case, as the order that made it known gave it.


class StartCase(EngineMessage, frozen=True, tag="start-case"):
    """`later`: nothing of the case starts before the ContinueLater that follows is answered with Proceed. `remember`
    names the tasks whose completed items the case keeps in mind, because somebody outside knows how to undo them; `*`
    is all."""

    case: CaseId
    flow: Flow
    inputs: dict[str, Value] = {}
    parent: CaseId | None = None
    later: bool = False
    remember: tuple[str, ...] = ()


class FinishItem(EngineMessage, frozen=True, tag="finish-item"):
    """A job, a task, a staging, a called case or an invoked partner is over. Staging puts its files into
    `outcome.files`. Refused as stale if the item is not live."""

    serial: int
    outcome: Outcome


class FireTimer(EngineMessage, frozen=True, tag="fire-timer"):
    serial: int


class Deliver(EngineMessage, frozen=True, tag="deliver"):
    """A message for a channel. Kept until a receive asks for it. `id` makes a repeated delivery harmless."""

    id: str
    channel: str
    value: Value = None
    correlation: Value = None


class Proceed(EngineMessage, frozen=True, tag="proceed"):
    """Go on with a long piece of work that an earlier event left off to stay short."""

    serial: int


# Steering. `by` is the identity of the exlet's step that commands it: the same command by the same step counts once. A
# person's commands have none.


class Suspend(EngineMessage, frozen=True, tag="suspend"):
    """The case, or one item of it, makes no progress until it is resumed. Facts that arrive meanwhile are kept.
    `holder` is who suspends: the same thing can be held by several, and goes on when all have let go."""

    item: ItemId | None = None
    holder: str = ""
    by: str = ""


class Resume(EngineMessage, frozen=True, tag="resume"):
    """Let go of what `holder` holds. A person, who has no name here, lets go of all that anyone holds."""

    item: ItemId | None = None
    holder: str = ""
    by: str = ""


class Cancel(EngineMessage, frozen=True, tag="cancel"):
    """End the case without handlers (`remove`): its jobs are cancelled."""

    reason: str = ""
    by: str = ""


class RestartItem(EngineMessage, frozen=True, tag="restart-item"):
    """Run a live item again from its start, with its data as at its start. `values` are what of it is other now;
    `level` is the one that it has waited in for that."""

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
    links are true, and the flow goes on with what comes next; `jobs.NAME.failed` is true and `jobs.NAME.fault` says
    why."""

    item: ItemId
    fault: Fault
    proceed: bool = False
    by: str = ""


class RemoveItem(EngineMessage, frozen=True, tag="remove-item"):
    """End a live item as cancelled. Nothing more runs on the path that it stands on: what would follow it in its
    sequence, loop or scope is skipped, outwards until there are branches beside it, which go on. `path` is set when it
    is taken; in journals of earlier versions it is not there, and only the item itself was skipped."""

    item: ItemId
    path: bool = False
    by: str = ""
    reason: str = ""


class WriteData(EngineMessage, frozen=True, tag="write-data"):
    """Put values into the case (its inputs, or variables of the flow by that name, or new ones), or into a live item: a
    task's data, a function's keyword arguments, a command's environment, a call's inputs, other sources for files that
    are staged. Names may be paths: `order.rows[0]`. It takes effect at once, also while the case or the item is
    suspended.

    An item's order is other from then on, under the same serial. `held` says that it has not gone out: then this is the
    item's data at its start. Otherwise a restart forgets what was written."""

    values: dict[str, Value]
    item: ItemId | None = None
    held: bool = False
    by: str = ""


class MarkCompensated(EngineMessage, frozen=True, tag="mark-compensated"):
    """These completed activities were undone from outside the case, or are about to be: the numbers are those that
    `compensations` gave. Nobody undoes them again, the flow's own handlers included."""

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
    """Another server decides about the case from here on. To the case it means nothing: it takes the place in the
    journal that the server before would have written to next."""

    server: str


Fact = Union[Command, CaseMoved]


NOT_CUT: Final = 0
CUT_WHEN_LONG: Final = -1


class Event(msgspec.Struct, frozen=True, omit_defaults=True):
    """A fact, mostly a command that was taken, and when. The journal is a list of these. `cut` is the step before which
    its work was cut, and the rest left to ContinueLater; NOT_CUT: all of it was done. An event that is applied for the
    first time is cut when it gets long."""

    at: Instant
    fact: Fact
    cut: int = NOT_CUT


# Orders. `serial` names the item or the timer; together with the case's id it is the order's identity.


class SubmitJob(EngineMessage, frozen=True, tag="submit-job"):
    serial: int
    spec: JobSpec


class CancelJob(EngineMessage, frozen=True, tag="cancel-job"):
    """`reason` is what somebody said who removed it, here and for tasks and called cases."""

    serial: int
    reason: str = ""


class SuspendJob(EngineMessage, frozen=True, tag="suspend-job"):
    serial: int


class ResumeJob(EngineMessage, frozen=True, tag="resume-job"):
    serial: int


class StageFiles(EngineMessage, frozen=True, tag="stage-files"):
    """Store given files on the server, then FinishItem with them. `files` maps a name to a path or URL."""

    serial: int
    item: ItemId
    files: dict[str, str]
    order: Literal["parallel", "sequence"] = "parallel"


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
    """Start a called flow as a case of its own. `flow` is the flow itself where it came along, else None and `name`."""

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
    """In XML `partner` is the partner link, `value` a message, `port_type` what is spoken there, and `reference` where:
    a service reference, as the partner link holds it. FinishItem then brings a message in `outcome.outputs`, or
    nothing when the operation is one-way and the partner has taken it; `wants_answer` is true for both."""

    serial: int
    item: ItemId
    partner: str
    operation: str
    value: Value = None
    wants_answer: bool = False
    port_type: str = ""
    reference: Value = None


class SendReply(EngineMessage, frozen=True, tag="send-reply"):
    """`message` is the id of the delivered message that is answered. In XML the value is a message of a WSDL, and
    `message_type` its name there."""

    serial: int
    message: str
    channel: str
    value: Value = None
    fault: str = ""
    message_type: str = ""


class RunPrimitive(EngineMessage, frozen=True, tag="do-mend"):
    """A primitive of this exlet, to be done to the case that it mends; then FinishItem. `about` is an item of that
    case, if not the one at hand."""

    serial: int
    item: ItemId
    do: Primitive
    target: Target = "item"
    about: str = ""
    settings: dict[str, Value] = {}


class RunStyleSheet(EngineMessage, frozen=True, tag="transform"):
    """Put a document through one of the flow's style sheets, then FinishItem with `{"result": value}` as outputs."""

    serial: int
    item: ItemId
    sheet: str
    source: str
    params: tuple[tuple[str, Value], ...] = ()


class ContinueLater(EngineMessage, frozen=True, tag="go-on"):
    """Give the command Proceed back, soon."""

    serial: int


class ListenerAdded(EngineMessage, frozen=True, tag="listens"):
    """For information, never owed: in a flow with XML somebody hears messages of the channel from now on, or hears
    others than before."""

    channel: str


class ItemSkipped(EngineMessage, frozen=True, tag="item-skipped"):
    """For information, never owed: an activity will not run here, or was `cancelled` when nobody had to be told."""

    item: ItemId
    name: str
    kind: str
    reason: str
    cancelled: bool = False


class ItemFailed(EngineMessage, frozen=True, tag="item-failed"):
    """For information, never owed: an activity failed before the world was asked for anything, so nobody else will
    tell of it (`early`); or it was made to fail, and the flow goes on."""

    item: ItemId
    name: str
    kind: str
    fault: Fault
    early: bool = False


class ItemDone(EngineMessage, frozen=True, tag="item-done"):
    """For information, never owed: something is over that nobody else will tell of. With a `fault` it failed."""

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


class EndCase(EngineMessage, frozen=True, tag="end-case"):
    """The case is over; tell whoever waits."""

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
"""What is said of a `stage` that names one and no target."""


def staging_outcome(files: dict[str, FileRef]) -> Outcome:
    """The outcome of a staging that went well."""
    return Outcome(files=files)
