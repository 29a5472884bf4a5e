"""Compiles a flow once: every activity and handler gets a number, and everything constant is precomputed.

The interpreter then follows numbers and never searches the flow. Whatever would make a case impossible to run (an
unknown link, a link across a loop's border, activities that wait for each other in a cycle) is found here as well."""

from collections.abc import Iterator
from typing import Any, Final, cast

import msgspec

from mendflow.core.engine.activity_checks import activity_problems
from mendflow.core.engine.activity_parts import HandlerBody, declarations_of, kind_of, parts_of
from mendflow.core.engine.expression_checks import FlowJudge, expression_problems
from mendflow.core.engine.result_checks import result_problems
from mendflow.core.engine.xml.checks import XmlScope, misplaced_values, speaks_xml, undeclared_names
from mendflow.core.model.errors import BadFlow
from mendflow.core.model.expr import Expr
from mendflow.core.model.flow import (
    Activity,
    ActivityNode,
    Call,
    Compensate,
    Flow,
    OnMessage,
    Parallel,
    Pick,
    PrimitiveStep,
    Receive,
    Reply,
    Rethrow,
    Scope,
)
from mendflow.core.model.xml import Operation, ScopeDeclarations, XmlType
from mendflow.core.pieces import Pieces, done_at_once

FLOW: Final = "flow"
CATCH: Final = "catch"
COMPENSATION: Final = "compensation"
TERMINATION: Final = "termination"
ON_MESSAGE: Final = "on-message"
ON_ALARM: Final = "on-alarm"
DEFAULT: Final = "default"

WORK: Final = frozenset({"job", "user-task", "call", "stage"})
"""Kinds that people count."""

REPEATED: Final = frozenset({"while", "until", "for-each", ON_MESSAGE, ON_ALARM, COMPENSATION})
"""Links may not cross the borders of these: there may be many instances of what is inside, or none in time."""

HANDLERS: Final = frozenset({CATCH, COMPENSATION, TERMINATION})


class PlanLink(msgspec.Struct):
    """`isolating_scope` is the number of the isolated scope that keeps the link's state back until it has ended; -1 if
    there is none."""

    index: int
    name: str
    owner: int
    source: int = -1
    target: int = -1
    isolating_scope: int = -1


class PlanNode(msgspec.Struct):
    """An activity or a handler. `children` are its parts; a handler's or a turn's body is its one child. `is_plain`
    means that nothing stands between being wanted and being started; `is_quiet`, that no link hears of its end."""

    index: int
    kind: str
    name: str
    activity: Any
    parent: int
    children: tuple[int, ...] = ()
    shown: str = ""  # the display name: the label, or the name
    targets: tuple[int, ...] = ()
    sources: tuple[tuple[int, Expr | None], ...] = ()
    leaving: tuple[int, ...] = ()  # links that lead out of it and its parts
    is_plain: bool = True
    is_quiet: bool = True
    isolated: bool = False
    catches: tuple[int, ...] = ()
    messages: tuple[int, ...] = ()
    alarms: tuple[int, ...] = ()
    compensation: int = -1
    termination: int = -1
    job_template: Any = None  # precomputed by its kind
    loops: tuple[tuple[str, ...], ...] | None = None  # the names of elements of loops around it
    called_with: str | None = None  # what tells this call of a function from others of the flow
    types: dict[str, XmlType] = {}  # variables that it declares, in flows with XML
    declared: ScopeDeclarations | None = None  # everything else that it declares


class Plan(msgspec.Struct):
    flow: Flow
    nodes: list[PlanNode]
    links: list[PlanLink]
    default: int  # the node of handlers that compensate everything
    referenced_names: frozenset[str]  # channels that some reply answers
    channels: frozenset[str]  # channels with a listener at some time
    called: dict[str, Flow]
    begins: frozenset[str]  # channels whose messages start a case, in flows with XML
    operations: dict[str, Operation]  # by channel, in flows with XML
    process: int  # the root node; in BPEL it is a scope
    work: frozenset[str] = frozenset()  # names of what people count, without what only handlers do

    @property
    def requests(self) -> frozenset[str]:
        """Channels whose messages must be answered, in flows with XML."""
        return frozenset(channel for channel, operation in self.operations.items() if operation.output)


NODES_AT_ONCE: Final = 200
"""So many activities are compiled between two pauses."""


def compile_flow(flow: Flow, *, taken: bool = False, alone: bool = False) -> Plan:
    """Compile the flow, or raise BadFlow with everything that is wrong with it and its embedded flows (not with these
    if `alone`). A flow that is `taken` already is not validated again: old cases must load whatever the checks are by
    then."""
    return done_at_once(compiling(flow, taken=taken, alone=alone))


def compiling(flow: Flow, *, taken: bool = False, alone: bool = False, judge: FlowJudge | None = None) -> Pieces[Plan]:
    """The same, in pieces. A `judge` may have no time for a long validation."""
    judge = judge or FlowJudge()
    compiler = _Compiler(flow, None if taken else judge)
    yield from compiler.run()
    problems = compiler.problems
    if not taken and not alone:
        for called in embedded_flows(flow):
            checked = _Compiler(called, judge)
            yield from checked.run()
            problems.extend(f"flow {called.name}: {problem}" for problem in checked.problems)
    problems.extend(judge.problems_of_all())
    if problems:
        raise BadFlow(f"flow {flow.name}: {problems[0]}", problems=problems)
    return compiler.plan()


def embedded_flows(flow: Flow) -> Iterator[Flow]:
    """The flows inside of a flow, and those inside of them. One that occurs in several places comes once."""
    seen: set[int] = set()
    pending = list(flow.calls)
    while pending:
        called = pending.pop()
        if id(called) not in seen:
            seen.add(id(called))
            pending.extend(called.calls)
            yield called


class _Compiler:
    """Without a `judge`, the flow is not validated."""

    def __init__(self, flow: Flow, judge: FlowJudge | None) -> None:
        self.flow = flow
        self.judge = judge
        self.nodes: list[PlanNode] = []
        self.links: list[PlanLink] = []
        self.declared: dict[tuple[int, str], int] = {}
        self.problems: list[str] = []
        self.names: set[str] = set()
        self.pending: list[PlanNode] = []
        self.add(FLOW, flow, -1)
        self.default = self.add(DEFAULT, None, 0)

    def run(self) -> Iterator[None]:
        """Compile all of it, with pauses."""
        while self.pending:
            yield from self.expand(self.pending.pop())
        yield from self.connect()
        yield from self.leave()
        if self.judge is not None:
            self.demand_declarations()
            self.demand_results()
        if not self.problems:
            yield from self.demand_an_order()

    def plan(self) -> Plan:
        asked = frozenset(node.activity.channel for node in self.nodes if isinstance(node.activity, Reply))
        heard = [*self.listening_nodes()]
        made = Plan(
            self.flow,
            self.nodes,
            self.links,
            self.default,
            asked,
            frozenset(each.channel for _, each in heard),
            called_flows(self.flow),
            frozenset(each.channel for _, each in heard if each.xml is not None and each.xml.creates),
            {each.channel: found for node, each in heard if (found := self.operation(node, each)) is not None},
            self.nodes[0].children[0],
        )
        made.work = frozenset(node.shown for node in work_below(made, made.process))
        return made

    def listening_nodes(self) -> Iterator[tuple[PlanNode, Receive | OnMessage]]:
        """Register a listener."""
        for node in self.nodes:
            if isinstance(node.activity, (Receive, OnMessage)):
                yield node, node.activity
            elif isinstance(node.activity, Pick):
                yield from ((node, each) for each in node.activity.messages)

    def operation(self, node: PlanNode, heard: Receive | OnMessage) -> Operation | None:
        """The operation whose messages a node receives, in a flow with XML."""
        if self.flow.xml is None or heard.xml is None:
            return None
        return self.xml_scope(node).operation(heard.xml, mine=True)

    def xml_scope(self, node: PlanNode) -> XmlScope:
        assert self.flow.xml is not None, "only flows with XML declare"
        nodes = (node, *self.ancestors(node))
        return XmlScope(
            self.flow.xml,
            [each.types for each in nodes if each.types],
            [each.declared for each in nodes if each.declared is not None],
        )

    def demand_declarations(self) -> None:
        """Refuse XML that refers to missing declarations."""
        if self.flow.xml is not None:
            process = self.nodes[self.nodes[0].children[0]]
            self.problems.extend(misplaced_values(self.flow, process.declared or ScopeDeclarations()))
        for node in self.nodes:
            activities = [node.activity, *(node.activity.messages if isinstance(node.activity, Pick) else ())]
            if self.flow.xml is not None:
                found = [problem for each in activities for problem in undeclared_names(each, self.xml_scope(node))]
                self.problems.extend(f"{node.name or node.kind}: {problem}" for problem in found)
            elif any(speaks_xml(each) for each in activities):
                self.problems.append(f"{node.name or node.kind}: it speaks XML, and the flow knows no WSDL files")

    def demand_results(self) -> None:
        """Refuse what asks a job for something that it does not leave."""
        if self.flow.xml is None:
            found = (node.activity for node in self.nodes if isinstance(node.activity, ActivityNode))
            activities = {each.name: each for each in found}
            self.problems.extend(result_problems(activities, (node.activity for node in self.nodes)))

    def add(self, kind: str, activity: Any, parent: int) -> int:
        name = getattr(activity, "name", "") or ""
        shown = getattr(activity, "label", "") or name
        node = PlanNode(len(self.nodes), kind, name, activity, parent, shown=shown)
        if self.flow.xml is not None:
            node.types, node.declared = declarations_of(activity)
        self.nodes.append(node)
        self.pending.append(node)
        if self.judge is not None:
            self.problems.extend(activity_problems(activity))
            self.problems.extend(expression_problems(activity, self.judge))
            if isinstance(activity, PrimitiveStep) and not self.flow.exlet:
                self.problems.append(f"{name}: `{activity.do}` makes sense only in an exlet, which mends another case")
        if isinstance(activity, ActivityNode):
            if name in self.names:
                self.problems.append(f"two activities are called {name}; give each a name of its own")
            self.names.add(name)
        return node.index

    def add_activity(self, activity: Activity, parent: int) -> int:
        return self.add(kind_of(activity), activity, parent)

    def expand(self, node: PlanNode) -> Iterator[None]:
        """Number what is directly inside the node."""
        activity, index = node.activity, node.index
        children = list[int]()
        for part in parts_of(activity):
            children.append(self.add_activity(part, index))
            if not len(self.nodes) % NODES_AT_ONCE:
                yield
        node.children = tuple(children)
        if isinstance(activity, Parallel):
            for name in activity.links:
                self.declared[index, name] = len(self.links)
                self.links.append(PlanLink(len(self.links), name, index))
        if isinstance(activity, Scope):
            node.messages = tuple(self.add(ON_MESSAGE, each, index) for each in activity.messages)
            node.alarms = tuple(self.add(ON_ALARM, each, index) for each in activity.alarms)
            node.catches = tuple(self.add(CATCH, each, index) for each in activity.catches)
            if activity.compensation is not None:
                node.compensation = self.add(COMPENSATION, HandlerBody(activity.compensation), index)
            if activity.termination is not None:
                node.termination = self.add(TERMINATION, HandlerBody(activity.termination), index)
            node.isolated = activity.isolated and not any(each.isolated for each in self.ancestors(node))
        self.demand_a_handler(node)

    def demand_a_handler(self, node: PlanNode) -> None:
        wanted: frozenset[str] = frozenset()
        if isinstance(node.activity, Rethrow):
            wanted = frozenset({CATCH})
        elif isinstance(node.activity, Compensate):
            wanted = HANDLERS
        if wanted and not any(each.kind in wanted for each in self.ancestors(node)):
            where = "a fault handler" if wanted == {CATCH} else "a fault, compensation or termination handler"
            self.problems.append(f"{node.name}: {node.kind} stands outside {where}; move it into one")

    def ancestors(self, node: PlanNode) -> Iterator[PlanNode]:
        while node.parent >= 0:
            node = self.nodes[node.parent]
            yield node

    def connect(self) -> Iterator[None]:
        """Resolve the links that activities name."""
        for node in self.nodes:
            if node.index and not node.index % NODES_AT_ONCE:
                yield
            activity = node.activity
            if not isinstance(activity, ActivityNode):
                continue
            targets = [self.find(node, name) for name in activity.targets]
            sources = [(self.find(node, source.link), source.when) for source in activity.sources]
            node.targets = tuple(link for link in targets if link >= 0)
            node.sources = tuple((link, when) for link, when in sources if link >= 0)
            node.is_plain = not node.targets and activity.when is None
            for index in node.targets:
                self.join(index, node, "target")
            for index, _ in node.sources:
                self.join(index, node, "source")
        for link in self.links:
            if link.source < 0 or link.target < 0:
                missing = "source" if link.source < 0 else "target"
                self.problems.append(f"link {link.name} has no {missing}; give it one or remove it")

    def find(self, node: PlanNode, name: str) -> int:
        for each in self.ancestors(node):
            if (found := self.declared.get((each.index, name))) is not None:
                return found
            if each.kind in REPEATED:
                break
        self.problems.append(f"{node.name}: no parallel around it declares link {name}, or a loop stands between")
        return -1

    def join(self, index: int, node: PlanNode, side: str) -> None:
        link = self.links[index]
        if getattr(link, side) >= 0:
            other = self.nodes[getattr(link, side)].name
            self.problems.append(f"link {link.name} has two {side}s, {other} and {node.name}; use a link for each")
        setattr(link, side, node.index)

    def leave(self) -> Iterator[None]:
        """Compute which links lead out of what."""
        leaving: dict[int, list[int]] = {}
        for link in self.links:
            if link.index and not link.index % NODES_AT_ONCE:
                yield
            if link.source < 0 or link.target < 0:
                continue
            within = {link.target, *(each.index for each in self.ancestors(self.nodes[link.target]))}
            node = self.nodes[link.source]
            while node.index != link.owner:
                leaving.setdefault(node.index, []).append(link.index)
                if node.isolated and node.index != link.source and node.index not in within:
                    link.isolating_scope = node.index
                node = self.nodes[node.parent]
        for index, links in leaving.items():
            self.nodes[index].leaving = tuple(links)
            self.nodes[index].is_quiet = False

    def demand_an_order(self) -> Iterator[None]:
        """Refuse activities that wait for each other in a cycle. Every node has a start and an end (two numbers); each
        edge says what comes before what."""
        after: list[list[int]] = [[] for _ in range(2 * len(self.nodes))]
        waits = [0] * len(after)

        def edge(first: int, then: int) -> None:
            after[first].append(then)
            waits[then] += 1

        for node in self.nodes:
            start, end = 2 * node.index, 2 * node.index + 1
            if node.index and not node.index % NODES_AT_ONCE:
                yield
            edge(start, end)
            if node.parent >= 0:
                edge(2 * node.parent, start)
                edge(end, 2 * node.parent + 1)
            if node.kind == "sequence":
                for first, then in zip(node.children, node.children[1:], strict=False):
                    edge(2 * first + 1, 2 * then)
        for link in self.links:
            edge(2 * link.source + 1, 2 * link.target)
        ready = [each for each, count in enumerate(waits) if not count]
        for number, each in enumerate(ready, 1):
            if not number % NODES_AT_ONCE:
                yield
            for then in after[each]:
                waits[then] -= 1
                if not waits[then]:
                    ready.append(then)
        if stuck := [link.name for link in self.links if waits[2 * link.target]]:
            self.problems.append(f"links {', '.join(stuck)} make activities wait for each other in a cycle")


def called_flows(flow: Flow) -> dict[str, Flow]:
    """The embedded flows. One that calls others without embedding them gets its caller's, itself among them."""
    found: dict[str, Flow] = {}
    for called in flow.calls:
        own = {each.name for each in called.calls}
        if any(name not in own for name in called_names(called)):
            others = tuple(each for each in flow.calls if each.name not in own)
            called = msgspec.structs.replace(called, calls=(*called.calls, *others))
        found[called.name] = called
    return found


def called_names(flow: Flow) -> Iterator[str]:
    return (activity.flow for activity in walk_activities(flow) if isinstance(activity, Call) and activity.flow)


def walk_activities(flow: Flow) -> Iterator[Activity]:
    """Every activity of a flow, including its handlers."""
    pending: list[Any] = [flow]
    while pending:
        activity = pending.pop()
        if isinstance(activity, ActivityNode):
            yield cast(Activity, activity)
        pending.extend(inner_parts(activity))


def inner_parts(activity: Any) -> list[Any]:
    """What is directly inside of an activity, a flow or a handler, with the handlers of a scope."""
    found: list[Any] = [*parts_of(activity)]
    if isinstance(activity, Scope):
        found += [*activity.messages, *activity.alarms, *activity.catches]
        found += [HandlerBody(each) for each in (activity.compensation, activity.termination) if each is not None]
    return found


def ancestors(plan: Plan, node: PlanNode) -> Iterator[PlanNode]:
    """What the node is in, from the inside outwards."""
    while node.parent >= 0:
        node = plan.nodes[node.parent]
        yield node


def work_below(plan: Plan, index: int) -> Iterator[PlanNode]:
    """The activities at or below a node that people count."""
    pending = [index]
    while pending:
        node = plan.nodes[pending.pop()]
        if node.kind in WORK:
            yield node
        pending.extend(reversed(node.children))
