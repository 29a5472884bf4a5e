"""Converts a native flow to a BPEL process.

A process starts with a message, so there is one with the flow's inputs, and a reply at the end. A job is an invoke of
the queue with its JSDL description. Conditions stay in CEL. A parallel with `finish` becomes a flow of scopes that
record their failure, and a throw after it. Activities without an equivalent are left, and the writer refuses them."""

from collections.abc import Iterator
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from mendflow.core.expressions import is_template, references
from mendflow.core.model.errors import BadFlow, Problem
from mendflow.core.model.expr import CEL, XPATH, Expr
from mendflow.core.model.flow import (
    Activity,
    Assign,
    Branch,
    Catch,
    Choose,
    Copy,
    Flow,
    ForEach,
    Invoke,
    JobActivity,
    LinkSource,
    OnAlarm,
    Parallel,
    Receive,
    Reply,
    Scope,
    Sequence,
    Throw,
    Until,
    Wait,
    While,
)
from mendflow.core.model.jobs import Submission
from mendflow.core.model.moments import MOMENTS
from mendflow.core.model.templates import Template
from mendflow.core.model.xml import (
    MessagePart,
    Operation,
    PartnerLink,
    ScopeDeclarations,
    ServicePort,
    SoapBinding,
    XmlCopy,
    XmlDefinitions,
    XmlMessage,
    XmlSource,
    XmlTarget,
    XmlType,
)
from mendflow.formats.bpel.imports import port_definitions
from mendflow.formats.bpel.ports import PORTS
from mendflow.formats.bpel.vocabulary import SCHEMA
from mendflow.formats.bpel.writing.job_descriptions import JsdlTemplate, jsdl_template
from mendflow.formats.bpel.writing.traversal import all_of

JOBS: Final = PORTS["jobs"]
CLIENT, QUEUE, INPUTS, BEGIN = "client", "queue", "inputs", "begin"
OPERATIONS: Final = {False: "run", True: "submitAndForget"}
TYPES: Final = {"string": "string", "number": "double", "boolean": "boolean"}
CONSTANTS: Final[dict[type, str]] = {bool: "boolean", int: "long", float: "double", str: "string"}


def process_of(flow: Flow) -> Flow:
    """The process. Raises BadFlow for what is ours alone."""
    return _NativeConverter(flow).process()


class _NativeConverter:
    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self.space = f"urn:mendflow:flow:{flow.name}"
        self.problems: list[str] = []
        self.links: dict[str, str] = {}

    def process(self) -> Flow:
        self._demand_known()
        body = self.activity(self.flow.body)
        taken = XmlMessage(
            partner_link=CLIENT, operation=BEGIN, variable=INPUTS if self.flow.inputs else "", creates=True
        )
        given = XmlMessage(partner_link=CLIENT, operation=BEGIN)
        steps = (
            Receive(name="begin", channel=f"{CLIENT}.{BEGIN}", xml=taken),
            body,
            Reply(name="done", channel=f"{CLIENT}.{BEGIN}", xml=given),
        )
        declared = self._declared()
        whole = Scope(name=str(self.flow.name), body=Sequence(name="whole", body=steps), declared=declared)
        if self.problems:
            raise BadFlow(problems=[Problem(message=each) for each in self.problems])
        return Flow(name=self.flow.name, body=whole, xml=self._world(), description=self.flow.description)

    def _demand_known(self) -> None:
        if self.flow.triggers is not None:
            self.problems.append(f"{self.flow.name}: BPEL has no word for `on`; cases of a process begin with messages")
        if self.flow.on_unhandled:
            self.problems.append(
                f"{self.flow.name}: BPEL has no word for `on-unhandled`; `mendflow run` has the option"
            )
        if self.flow.outputs:
            self.problems.append(
                f"{self.flow.name}: what it puts out comes from its jobs, and a process sees none of that"
            )
        for name, each in self.flow.inputs.items():
            if each.type and each.type not in (*TYPES, *MOMENTS):
                self.problems.append(f"{name}: an input that is a {each.type} has no type in XML")
            if not each.required and each.default is not None:
                self.problems.append(f"{name}: parts of messages have no defaults; let it be required")

    def _declared(self) -> ScopeDeclarations:
        own, jobs = f"{{{self.space}}}", f"{{{JOBS}}}"
        types = {INPUTS: XmlType(message=f"{own}begin")} if self.flow.inputs else {}
        return ScopeDeclarations(
            types=types | self._variables(),
            partner_links={
                CLIENT: PartnerLink(type=f"{own}FlowLink", mine=f"{own}Flow", my_role="flow"),
                QUEUE: PartnerLink(type=f"{jobs}JobsLink", partner=f"{jobs}Jobs", partner_role="queue"),
            },
        )

    def _variables(self) -> dict[str, XmlType]:
        """Those of the flow itself. What it writes into one first tells its type."""
        inner = {name for scope in all_of(self.flow.body, Scope) for name in scope.variables}
        values: dict[str, Template] = {}
        for assign in all_of(self.flow.body, Assign):
            for copy in assign.copies:
                if copy.to not in inner and (assign.first or copy.to not in values):
                    values[copy.to] = copy.value
        return {name: self._type(name, value) for name, value in values.items()}

    def _type(self, name: str, value: Template) -> XmlType:
        """The type of a variable, by the value that it begins with."""
        if type(value) not in CONSTANTS or is_template(value):
            self.problems.append(
                f"{name}: let it begin with a text, a number or a boolean, which tells its type in XML"
            )
        return XmlType(type=_xsd(CONSTANTS.get(type(value), "string")))

    def _world(self) -> XmlDefinitions:
        own = f"{{{self.space}}}"
        parts = tuple(
            MessagePart(name=name, type=_xsd(TYPES.get(each.type, "string"))) for name, each in self.flow.inputs.items()
        )
        operation = Operation(name=BEGIN, input=f"{own}begin", output=f"{own}done")
        port = ServicePort(
            service=f"{own}FlowService",
            name="FlowPort",
            port_type=f"{own}Flow",
            style="rpc",
            operations={BEGIN: SoapBinding(style="rpc", namespace=self.space)},
            binding="FlowSoap",
        )
        jobs = port_definitions("jobs").world(self.space, {})
        return replace(
            jobs,
            messages={f"{own}begin": parts, f"{own}done": (), **jobs.messages},
            port_types={f"{own}Flow": {BEGIN: operation}, **jobs.port_types},
            ports=(port, *jobs.ports),
        )

    # activities

    def activity(self, at: Activity) -> Activity:
        """The same in BPEL's words, with its links. What BPEL has no words for stays as it is."""
        if at.when is not None:
            self.problems.append(f"{at.name}: BPEL has no `when` on activities; put it into a choice")
        return self._linked(self._plain(at), at)

    def _plain(self, at: Activity) -> Activity:
        match at:
            case JobActivity():
                return self._job(at)
            case Sequence():
                return replace(at, body=tuple(map(self.activity, at.body)))
            case Parallel():
                return self._parallel(at)
            case Choose():
                branches = tuple(Branch(self._checked(at, each.when), self.activity(each.body)) for each in at.branches)
                return replace(at, branches=branches, otherwise=self._maybe(at.otherwise))
            case While() | Until():
                return replace(at, condition=self._checked(at, at.condition), body=self.activity(at.body))
            case ForEach():
                return self._for_each(at)
            case Scope():
                return self._scope(at)
            case Assign():
                return replace(at, copies=(), first=False, xml=tuple(self._copy(at, each) for each in at.copies))
            case Wait():
                return replace(at, duration=self._duration(at, at.duration))
        return at

    def _maybe(self, at: Activity | None) -> Activity | None:
        return self.activity(at) if at is not None else None

    def _linked(self, made: Activity, at: Activity) -> Activity:
        """Links have other names, since ours may hold what a name of XML may not; and `all` is said of each of them."""
        targets = tuple(map(self._link, at.targets))
        join: Any = at.join if at.join != "all" else Expr(" and ".join(f"${name}" for name in targets), XPATH)
        if isinstance(at.join, Expr):
            self.problems.append(f"{at.name}: its join condition is in CEL, and BPEL's speak of links by their names")
        sources = tuple(LinkSource(self._link(each.link), self._when(at, each.when)) for each in at.sources)
        given = {each.link: each.when for each in made.sources}
        kept = tuple(LinkSource(each.link, _conjunction(given.get(each.link), each.when)) for each in sources)
        return replace(made, targets=targets, join=join if targets else "any", sources=kept)

    def _link(self, name: str) -> str:
        return self.links.setdefault(name, f"link{len(self.links) + 1}")

    def _when(self, at: Activity, when: Expr | None) -> Expr | None:
        return self._checked(at, when) if when is not None else None

    def _job(self, at: JobActivity) -> Activity:
        """Its description is a literal; the queue answers when the job has ended, or at once if nobody waits for it."""
        forgotten = at.submission is Submission.FORGET
        operation = OPERATIONS[forgotten]
        try:
            description = jsdl_template(at, self.flow.folder)
        except BadFlow as refused:
            prefix, name = f"{at.label or at.name}: ", at.name.replace(".", "-")
            self.problems += [prefix + each.message.removeprefix(f"{name}: ") for each in refused.problems]
            description = JsdlTemplate("", ())
        literal = f'<literal><{operation} xmlns="{JOBS}">{description.text}</{operation}></literal>'
        jobs = f"{{{JOBS}}}"
        types = {"run": XmlType(message=f"{jobs}{operation}Request")}
        types |= {} if forgotten else {"ran": XmlType(message=f"{jobs}runResponse")}
        copies = [XmlCopy(source=XmlSource(literal=literal), target=XmlTarget(variable="run", part="parameters"))]
        for path, expr in description.filled:
            place = XmlTarget(expression=Expr(f"$run.parameters/*[1]{path}", XPATH))
            copies.append(XmlCopy(source=XmlSource(expression=self._checked(at, expr)), target=place))
        sends = XmlMessage(partner_link=QUEUE, operation=operation, variable="run")
        gets = None if forgotten else XmlMessage(partner_link=QUEUE, operation=operation, variable="ran")
        call = Invoke(name=at.name, partner=QUEUE, operation=operation, sends=sends, gets=gets)
        steps = (Assign(name="assign", xml=tuple(copies)), call)
        return Scope(name="scope", body=Sequence(name="sequence", body=steps), declared=ScopeDeclarations(types=types))

    def _parallel(self, at: Parallel) -> Activity:
        if at.on_fault == "stop":
            branches = tuple(map(self.activity, at.branches))
            return replace(at, branches=branches, links=tuple(map(self._link, at.links)))
        names = {each.name: f"failed{number}" for number, each in enumerate(at.branches, 1)}
        branches = tuple(self._noting(each, names[each.name]) for each in at.branches)
        inside = replace(at, branches=branches, links=tuple(map(self._link, at.links)), on_fault="stop")
        return self._thrown_behind(replace(inside, targets=(), sources=(), join="any"), list(names.values()))

    def _noting(self, at: Activity, flag: str) -> Activity:
        """A scope that ends well though its activity failed, and whose links are false then."""
        bare = replace(at, targets=(), sources=(), join="any")
        scope = Scope(name="scope", body=self.activity(bare), catches=(Catch(_set_flag(flag), variable=""),))
        sources = tuple(LinkSource(self._link(each.link), Expr(f"!{flag}", CEL)) for each in at.sources)
        return self._linked(replace(scope, sources=sources), at)

    def _thrown_behind(self, inside: Activity, flags: list[str]) -> Activity:
        any_failed = Expr(" || ".join(flags), CEL)
        throw = Throw(name="throw", fault=f"{{{self.space}}}branchFailed")
        behind = Choose(name="if", branches=(Branch(any_failed, throw),))
        no = XmlSource(expression=Expr("false", CEL))
        declared = ScopeDeclarations(
            types={flag: XmlType(type=_xsd("boolean")) for flag in flags},
            first=tuple(XmlCopy(source=no, target=XmlTarget(variable=flag)) for flag in flags),
        )
        return Scope(name="scope", body=Sequence(name="sequence", body=(inside, behind)), declared=declared)

    def _for_each(self, at: ForEach) -> Activity:
        """What turns leave is seen by nobody, so nothing is collected."""
        if at.tolerate is not None or at.tolerate_percent is not None:
            self.problems.append(
                f"{at.name}: BPEL has no word for `tolerate`; `min-success` says how many must succeed"
            )
        if any("index" in references(each) for each in _templates_in(at.body)):
            self.problems.append(f"{at.name}: BPEL counts by the number itself, and has no `index`")
        first, last = self._number(at, at.first), self._number(at, at.last)
        uncollected = replace(at, collect=None, collect_map={}, collect_files={})
        counted = replace(uncollected, first=first, last=last, on_fault="stop", targets=(), sources=(), join="any")
        if at.on_fault == "stop":
            return replace(counted, body=Scope(name="scope", body=self.activity(at.body)))
        turn = Scope(name="scope", body=self.activity(at.body), catches=(Catch(_set_flag("failed"), variable=""),))
        return self._thrown_behind(replace(counted, body=turn), ["failed"])

    def _number(self, at: Activity, value: Expr | int | None) -> Expr | int | None:
        return self._checked(at, value) if isinstance(value, Expr) else value

    def _scope(self, at: Scope) -> Activity:
        catches = tuple(self._catch(at, each) for each in at.catches)
        types, first = {}, []
        for name, value in at.variables.items():
            types[name] = self._type(name, value)
            first.append(XmlCopy(source=self._source(at, name, value), target=XmlTarget(variable=name)))
        alarms = tuple(
            OnAlarm(
                self.activity(each.body), self._duration(at, each.duration), each.until, self._duration(at, each.every)
            )
            for each in at.alarms
        )
        return replace(
            at,
            body=self.activity(at.body),
            variables={},
            declared=ScopeDeclarations(types=types, first=tuple(first)) if types else None,
            catches=catches,
            compensation=self._maybe(at.compensation),
            termination=self._maybe(at.termination),
            alarms=alarms,
        )

    def _catch(self, at: Scope, catch: Catch) -> Catch:
        thrown = {each.fault for each in all_of(self.flow.body, Throw)}
        if catch.fault is not None and catch.fault not in thrown:
            self.problems.append(f"{at.name}: no fault is {catch.fault} in a process, where a job's is jobFailed")
        if any(catch.variable in references(each) for each in _templates_in(catch.body)):
            self.problems.append(f"{at.name}: what is in `{catch.variable}` is known here alone")
        return Catch(self.activity(catch.body), catch.fault, "")

    # data

    def _copy(self, at: Assign, copy: Copy) -> XmlCopy:
        if not copy.to.isidentifier():
            self.problems.append(f"{at.name}: {copy.to} is a place in a variable; only whole ones are written")
        return XmlCopy(source=self._source(at, copy.to, copy.value), target=XmlTarget(variable=copy.to))

    def _source(self, at: Activity, name: str, value: Template) -> XmlSource:
        text = value.strip() if isinstance(value, str) and is_template(value) else None
        if text is not None and text.startswith("${{") and text.endswith("}}") and text.count("${{") == 1:
            return XmlSource(expression=self._checked(at, Expr(text[3:-2].strip(), CEL)))
        if text is not None or type(value) not in CONSTANTS:
            self.problems.append(f"{at.name}: {name} is neither one expression nor a text, a number or a boolean")
        return XmlSource(expression=Expr(msgspec.json.encode(value).decode(), CEL))

    def _checked(self, at: Activity, expr: Expr) -> Expr:
        for name in sorted(references(expr)):
            if name.partition(".")[0] == "jobs":
                self.problems.append(
                    f"{at.name}: `{expr.text:.80}` asks for what a job left, which a process does not see"
                )
        return expr

    def _duration(self, at: Activity, value: Expr | int | None) -> Expr | int | None:
        """Ours are milliseconds; BPEL's are texts."""
        if not isinstance(value, Expr):
            return value
        return Expr(f'"PT" + string(double({self._checked(at, value).text}) / 1000.0) + "S"', CEL)


def _templates_in(at: Activity) -> Iterator[Template | Expr]:
    yield from all_of(at, Expr)
    yield from (text for text in all_of(at, str) if "${{" in text)


def _conjunction(one: Expr | None, other: Expr | None) -> Expr | None:
    if one is None or other is None or one == other:
        return one or other
    return Expr(f"({one.text}) && ({other.text})", CEL)


def _set_flag(flag: str) -> Activity:
    yes = XmlSource(expression=Expr("true", CEL))
    return Assign(name="assign", xml=(XmlCopy(source=yes, target=XmlTarget(variable=flag)),))


def _xsd(name: str) -> str:
    return f"{{{SCHEMA}}}{name}"
