"""A flow says what to do: a tree of activities, as WS-BPEL 2.0 has them, plus job, task, stage and call.

YAML, Python and BPEL are faces of this one model. Wherever a field may hold an expression inside plain data it is a
template (templates.py).

Expressions see variables of the enclosing scopes by name, `inputs`, and `jobs.NAME` for what a finished activity of
that name left: `jobs.NAME.outputs`, `jobs.NAME.files.F`, `jobs.NAME.exit_code`. A name is looked up in the scope that
the activity stands in, then outwards, so that the iterations of a parallel loop do not see each other."""

from typing import Final, Literal, Union

import msgspec

from mendflow.core.model.containers import JobContainer
from mendflow.core.model.expr import Expr
from mendflow.core.model.flow_files import FlowSource
from mendflow.core.model.flow_triggers import FlowTriggers
from mendflow.core.model.ids import FlowName
from mendflow.core.model.jobs import FunctionRef, JobSpec, Limits, RetryRule, Submission
from mendflow.core.model.repair import Primitive, Target
from mendflow.core.model.secrets import SecretUse
from mendflow.core.model.software import Software
from mendflow.core.model.templates import PublicationTemplate, ResourceTemplates, Template
from mendflow.core.model.values import Value
from mendflow.core.model.xml import ScopeDeclarations, XmlCopy, XmlDefinitions, XmlMessage, XmlType

FILE: Final = "file"
FILES: Final = "files"
"""The type of an input that is a list of files."""

TABLE: Final = "table"
"""The type of an input that is a list of maps, one for each row."""

NO_FOLDER: Final = "(another domain)"
"""The folder of a flow that came from another domain: no path of this machine means anything in it."""

UNSENT_FOLDER: Final = "(left behind)"
"""The folder of a flow whose text came without it, as from a browser: a path from the root is one of the server's
machine, and what was beside the text is not there."""

DURATION_MS_MAX: Final = 10 * 366 * 86_400_000
"""Nobody waits longer than ten years."""


class LinkSource(msgspec.Struct, frozen=True, omit_defaults=True):
    """This activity is the source of a link; `when` is its transition condition."""

    link: str
    when: Expr | None = None


class ActivityNode(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", omit_defaults=True):
    """What every activity has. `name` is unique in its flow. `targets` are the links that must be decided before it
    starts; `join` says when it then runs (`any` is BPEL's default; `all` is what `needs` means); if it does not hold,
    the activity is skipped when `suppress_join_failure`, and otherwise throws `joinFailure`. `when` is a plain
    condition of ours: if it is false when the activity would start, the activity is skipped and its links are false.
    `label` is what people see instead of the name in item ids and counts: the one job inside the loop `count` is named
    `count.iteration` and labelled `count`, so that its items are `count[0]`, `count[1]`. Lookups go by names."""

    name: str
    label: str = ""
    targets: tuple[str, ...] = ()
    sources: tuple[LinkSource, ...] = ()
    join: Literal["any", "all"] | Expr = "any"
    suppress_join_failure: bool = True
    when: Expr | None = None


class Empty(ActivityNode, frozen=True, tag="empty"):
    pass


class Exit(ActivityNode, frozen=True, tag="exit"):
    """End the case at once, without handlers."""


class Copy(msgspec.Struct, frozen=True):
    """`to` is a variable, or a path into one: `totals.bytes`, `list[0]`."""

    to: str
    value: Template


class Assign(ActivityNode, frozen=True, tag="assign"):
    """All copies are made, or none. If they are the `first` ones, the initial values of the flow's variables, then
    writes to the case before its start override them. `xml` are copies of XML, in order, in flows that have it; with
    `validate`, the changed variables are validated against their schemas."""

    copies: tuple[Copy, ...] = ()
    first: bool = False
    xml: tuple[XmlCopy, ...] = ()
    validate: bool = False


class Validate(ActivityNode, frozen=True, tag="validate"):
    """Validate variables against their schemas; throws `invalidVariables`."""

    variables: tuple[str, ...]


class Wait(ActivityNode, frozen=True, tag="wait"):
    """`duration` in milliseconds, or `until` an instant in milliseconds; each an expression or a number."""

    duration: Expr | int | None = None
    until: Expr | int | None = None


class Throw(ActivityNode, frozen=True, tag="throw"):
    """`variable` holds the XML data of the fault."""

    fault: str
    data: Template = None
    message: Template = ""
    variable: str = ""


class Rethrow(ActivityNode, frozen=True, tag="rethrow"):
    """Only inside a fault handler: throw again what it caught."""


class Compensate(ActivityNode, frozen=True, tag="compensate"):
    """Only inside fault, compensation and termination handlers: compensate one completed inner scope, or all of them
    in reverse order of completion."""

    scope: str | None = None


class Sequence(ActivityNode, frozen=True, tag="sequence"):
    body: tuple["Activity", ...]


class Parallel(ActivityNode, frozen=True, tag="parallel"):
    """Parallel branches, ordered by links. `on_fault="stop"` is BPEL: the first fault ends the other branches. `finish`
    lets independent branches end first: a failed branch's links are false, what depends on them is skipped, and the
    first fault is thrown when all have ended."""

    branches: tuple["Activity", ...]
    links: tuple[str, ...] = ()
    on_fault: Literal["stop", "finish"] = "stop"


class Branch(msgspec.Struct, frozen=True):
    when: Expr
    body: "Activity"


class Choose(ActivityNode, frozen=True, tag="choose"):
    """The first branch whose condition holds, or with `many` all that hold, in parallel; else `otherwise`."""

    branches: tuple[Branch, ...]
    otherwise: Union["Activity", None] = None
    many: bool = False


class While(ActivityNode, frozen=True, tag="while"):
    condition: Expr
    body: "Activity"


class Until(ActivityNode, frozen=True, tag="until"):
    condition: Expr
    body: "Activity"


class ForEach(ActivityNode, frozen=True, tag="for-each"):
    """Once per element of `items` (a list known only when it starts), or per number from `first` to `last`, or over
    the lists of `axes`, which have names: every combination of their elements, the first list's changing slowest, or
    with `zip` the first of each, the second of each, and so on.

    Each iteration has a scope of its own in which `variable` holds the element (or the number), or each name of `axes`
    its own, and `index` its place. `min_success` and `min_ended` are completion conditions, of which a loop has one at
    most: when that many iterations succeeded, or ended in any way, the others are terminated; if that can no longer
    happen, `completionConditionFailure` is thrown. With `tolerate` (a number of iterations) or `tolerate_percent`
    failed iterations do not end the others, and the loop ends well unless more than that have failed.

    `collect` (an expression) or `collect_map` is evaluated at the end of each iteration; the results, in the order of
    iterations, become `jobs.NAME.outputs`. `collect_files` gives the files of an iteration, by name:
    `jobs.NAME.files.F` is the list of them. Of an iteration that gave nothing both have null. `max_parallel` bounds how
    many run at a time (0: no bound)."""

    body: "Activity"
    items: Template = None
    axes: dict[str, Template] = {}
    zip: bool = False
    first: Expr | int | None = None
    last: Expr | int | None = None
    variable: str = "item"
    parallel: bool = True
    max_parallel: int = 0
    min_success: Expr | int | None = None
    min_ended: Expr | int | None = None
    tolerate: Expr | int | None = None
    tolerate_percent: float | None = None
    collect: Expr | None = None
    collect_map: dict[str, Template] = {}
    collect_files: dict[str, Expr] = {}
    on_fault: Literal["stop", "finish"] = "stop"


class Catch(msgspec.Struct, frozen=True, omit_defaults=True):
    """`fault` is the fault's name; None catches all. The fault is bound to `variable` as a dict: name, category,
    message, data, exit_code, signal. With `holds` only a fault whose XML data is of that kind is caught, and the
    variable holds the data itself."""

    body: "Activity"
    fault: str | None = None
    variable: str = "fault"
    holds: XmlType | None = None


class OnMessage(msgspec.Struct, frozen=True, omit_defaults=True):
    """A message that arrives at `channel` with the value of `correlation` (if given) is bound to `variable`."""

    channel: str
    body: "Activity"
    variable: str = "message"
    correlation: Template = None
    exchange: str = ""  # which reply answers it, if several requests of a channel are open
    xml: XmlMessage | None = None
    declared: ScopeDeclarations | None = None  # event handlers only: what the scope of the handler declares


class OnAlarm(msgspec.Struct, frozen=True, omit_defaults=True):
    body: "Activity"
    duration: Expr | int | None = None
    until: Expr | int | None = None
    every: Expr | int | None = None  # event handlers only


class Scope(ActivityNode, frozen=True, tag="scope"):
    body: "Activity"
    variables: dict[str, Template] = {}
    catches: tuple[Catch, ...] = ()
    compensation: Union["Activity", None] = None
    termination: Union["Activity", None] = None
    messages: tuple[OnMessage, ...] = ()
    alarms: tuple[OnAlarm, ...] = ()
    isolated: bool = False
    exit_on_standard_fault: bool = False
    declared: ScopeDeclarations | None = None


class Receive(ActivityNode, frozen=True, tag="receive"):
    channel: str
    variable: str = ""
    correlation: Template = None
    exchange: str = ""
    xml: XmlMessage | None = None


class Reply(ActivityNode, frozen=True, tag="reply"):
    """Answer the open receive of `channel`, with a value or a fault."""

    channel: str
    value: Template = None
    fault: str = ""
    exchange: str = ""
    xml: XmlMessage | None = None


class Pick(ActivityNode, frozen=True, tag="pick"):
    """The first of several messages and alarms; the others are dropped."""

    messages: tuple[OnMessage, ...] = ()
    alarms: tuple[OnAlarm, ...] = ()


class Invoke(ActivityNode, frozen=True, tag="invoke"):
    """Call a partner's operation; with `variable` wait for its answer and store it there. `sends` and `gets` are for
    XML: the partner is then a partner link."""

    partner: str
    operation: str
    value: Template = None
    variable: str = ""
    sends: XmlMessage | None = None
    gets: XmlMessage | None = None


class JobActivity(ActivityNode, frozen=True, tag="job"):
    """A batch job: a shell command (a template) or a Python function. `inputs` maps paths in the job's folder to
    sources: a template that gives a stored file (`${{ jobs.a.files.table }}`), the path of a given one, or a
    logical name (`lfn:/store/raw/a`). Sources that are paths are staged first, together or one after another.
    `replicas` maps such paths to the places where the pilot finds them, best first: each a template, for a list or
    for one place. `publish` says which of `files` get a logical name and go to a storage element, or go to a URL of
    their own. What is not said here is as in JobSpec. A job that another domain has sent is `given` whole, with all
    expressions evaluated there, and has nothing else."""

    given: JobSpec | None = None
    command: str | None = None
    shell: str = ""
    container: JobContainer | None = None
    unstaged: tuple[str, ...] = ()
    file_lists: tuple[str, ...] = ()
    function: FunctionRef | None = None
    args: tuple[Template, ...] = ()
    kwargs: dict[str, Template] = {}
    env: dict[str, Template] = {}
    inputs: dict[str, Template] = {}
    replicas: dict[str, Template] = {}
    files: dict[str, Template] = {}
    publish: dict[str, PublicationTemplate] = {}
    link_inputs: bool = False
    resources: ResourceTemplates = ResourceTemplates()
    limits: Limits = Limits()
    secrets: tuple[SecretUse, ...] = ()
    priority: int = 0
    owner: str = ""
    expected_ms: int = 0
    retries: int = 0
    retry_wait_ms: int = 0
    retry: tuple[RetryRule, ...] = ()
    submission: Submission = Submission.NOTIFY
    stage_in: Literal["parallel", "sequence"] = "parallel"
    cache: bool | None = None
    software: Software | None = None
    domain: str = ""


class UserTask(ActivityNode, frozen=True, tag="user-task"):
    """A person's work. Completed with outputs, or rejected, which throws `rejected`; after the deadline it throws
    `deadline`. `fields` names the wanted outputs, with a description each."""

    role: str
    title: Template = ""
    description: Template = ""
    data: Template = None
    fields: dict[str, str] = {}
    deadline_ms: Expr | int = 0


class Stage(ActivityNode, frozen=True, tag="stage"):
    """Store files on the server: name -> path or URL. They become `jobs.NAME.files`."""

    files: dict[str, Template]
    order: Literal["parallel", "sequence"] = "parallel"


class Call(ActivityNode, frozen=True, tag="call"):
    """Run another flow as a separate case; its outputs become `jobs.NAME.outputs`. With an empty `flow` the rules
    choose. `domain` names the domain that runs it, or is `any`."""

    flow: str = ""
    inputs: dict[str, Template] = {}
    domain: str = ""


class PrimitiveStep(ActivityNode, frozen=True, tag="mend"):
    """A primitive: an order to the case that this exlet mends. Only exlets have them. `item` names another item of that
    case than the one at hand. `settings` are its parameters: what to change in a resubmitted job, which level to wait
    in, what to write, whom to notify. Worklets of a compensate are calls, not primitives."""

    do: Primitive
    target: Target = "item"
    item: Template = ""
    settings: dict[str, Template] = {}


Activity = Union[
    Empty,
    Exit,
    Assign,
    Validate,
    Wait,
    Throw,
    Rethrow,
    Compensate,
    Sequence,
    Parallel,
    Choose,
    While,
    Until,
    ForEach,
    Scope,
    Receive,
    Reply,
    Pick,
    Invoke,
    JobActivity,
    UserTask,
    Stage,
    Call,
    PrimitiveStep,
]


class Input(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An input of a flow. Without a default it is required. `type` is one of string, number, boolean, list, map, table,
    file, files, or empty for any. The value of `files` is a list of files; given as a pattern, or several, it becomes
    the files that match when a case begins. A table is a list of maps, and `columns` says what is in some of their
    members. A number that is `inferred` is one because of its default, and nobody has said so. `read_from` is the path
    of the file that a default was read from when the flow was deployed, and `read_digest` its digest then."""

    type: str = ""
    inferred: bool = False
    description: str = ""
    required: bool = False
    default: Value = None
    columns: dict[str, str] = {}
    read_from: str = ""
    read_digest: str = ""


UnhandledPolicy = Literal["", "fail", "hold"]
"""What a failure does that no rule takes up, unless whoever started the case said it; empty: as the flow that called
it, or the server, says."""


class Flow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, weakref=True):
    """`body` is the whole; the flow itself is its outermost scope. `outputs` are templates evaluated at the end.
    `calls` holds the flows that this one calls and that came with it. `folder` is where given files are looked for.
    An `exlet` mends another case, and only there primitives make sense. `variables` and `results` are what a flow knows
    when it begins: a compensation that is a case of its own has those of when what it undoes completed. `xml` is
    what a flow in BPEL knows from its WSDL files. `triggers` count only if it is deployed with them. `source` is the
    file that it was read from, on its way to a server, which keeps it beside the flow and not in it. `beside` has the
    paths of the stored files in it that lay beside that file, each with its digest, if some lay in folders there."""

    name: FlowName
    body: Activity
    inputs: dict[str, Input] = {}
    outputs: dict[str, Template] = {}
    description: str = ""
    calls: tuple["Flow", ...] = ()
    folder: str = ""
    exlet: bool = False
    variables: dict[str, Value] = {}
    results: dict[str, dict[str, Value]] = {}
    xml: XmlDefinitions | None = None
    on_unhandled: UnhandledPolicy = ""
    triggers: FlowTriggers | None = None
    source: FlowSource | None = None
    beside: dict[str, str] = {}
