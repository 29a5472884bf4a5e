"""Links order the branches of a parallel. A link is undecided, then true or false for good.

An activity starts when all links that lead to it are decided and its join condition holds. An activity that ends well
decides its links by their conditions; one that ends in any other way, or never runs, makes them false, and so do all
parts of it that never ran: dead paths are walked to their end, and nobody waits for what will not come."""

from typing import TYPE_CHECKING

from mendflow.core.engine import data
from mendflow.core.engine.faults import FlowFault
from mendflow.core.engine.plan import PlanNode
from mendflow.core.engine.state import Graph, Instance, InstanceEnd, InstancePhase, ScopeInstance
from mendflow.core.model.expr import Expr

if TYPE_CHECKING:
    from mendflow.core.engine.run import Run

JOIN = 1
NAMES_MAX = 5


def graph_of(run: "Run", link: int, near: Instance) -> Graph:
    """The instance of the parallel that owns the link, from any instance inside it."""
    owner = run.plan.links[link].owner
    while near.node != owner:
        near = run.instances[near.parent]
    assert isinstance(near, Graph)
    return near


def await_links(run: "Run", instance: Instance, node: PlanNode) -> bool:
    """Whether every link to it is decided; else it waits for those that are not."""
    for link in node.targets:
        graph = graph_of(run, link, instance)
        if link not in graph.links:
            graph.waiting[link] = instance.id
            instance.undecided += 1
    return not instance.undecided


def stop_waiting(run: "Run", instance: Instance, node: PlanNode) -> None:
    for link in node.targets:
        graph_of(run, link, instance).waiting.pop(link, None)


def join_holds(run: "Run", instance: Instance, node: PlanNode) -> bool:
    """Whether the join condition holds, now that all links are decided."""
    states = {run.plan.links[link].name: graph_of(run, link, instance).links[link] for link in node.targets}
    join = node.activity.join
    if isinstance(join, Expr):
        return data.holds(run.case, instance.env, join, states)
    return all(states.values()) if join == "all" else any(states.values())


def why_not_joined(run: "Run", instance: Instance, node: PlanNode) -> str:
    """Why an activity does not run whose links do not let it: the activities that it needs and that did not complete.
    A link with a condition may be false although its source did."""
    dead = [link for link in node.targets if not graph_of(run, link, instance).links[link]]
    sources = [run.plan.nodes[run.plan.links[link].source] for link in dead]
    conditions = {link: when for each in sources for link, when in each.sources}
    names = list(dict.fromkeys(each.shown for each in sources if each.shown))
    if not names or any(conditions.get(link) is not None for link in dead):
        return "an activity that it needs did not complete"
    more = f" and {len(names) - NAMES_MAX} more" if len(names) > NAMES_MAX else ""
    return f"it needs {', '.join(names[:NAMES_MAX])}{more}, which did not complete"


def decide(run: "Run", link: int, near: Instance, state: bool) -> None:
    """Decide a link, once. One that leaves an isolated scope is kept back until the scope has ended."""
    keeper = run.plan.links[link].isolating_scope
    if keeper >= 0:
        scope: Instance | None = near
        while scope is not None and scope.node != keeper:
            scope = run.instances.get(scope.parent)
        if isinstance(scope, ScopeInstance) and scope.phase is not InstancePhase.DONE:
            scope.links.setdefault(link, state)
            return
    graph = graph_of(run, link, near)
    if link in graph.links:
        return
    graph.links[link] = state
    waiting = graph.waiting.pop(link, 0)
    if waiting:
        target = run.instances[waiting]
        target.undecided -= 1
        if not target.undecided:
            run.agenda.append((JOIN, waiting))


def decide_leaving(run: "Run", instance: Instance, node: PlanNode) -> None:
    """Decide all links that lead out of an activity which has just ended."""
    if instance.end is InstanceEnd.COMPLETED or instance.end is InstanceEnd.FAILED:
        kept = instance.links if isinstance(instance, ScopeInstance) and instance.fault is None else {}
        for link, state in kept.items():
            decide(run, link, instance, state)
        problem = evaluate_sources(run, instance, node)
    else:
        problem = None
    for link in node.leaving:
        decide(run, link, instance, False)
    if problem is not None:
        run.throw(instance, problem.fault)


def evaluate_sources(run: "Run", instance: Instance, node: PlanNode) -> FlowFault | None:
    """Evaluate the transition conditions. One that cannot be evaluated is the activity's fault."""
    for link, when in node.sources:
        try:
            state = when is None or data.holds(run.case, instance.env, when)
        except FlowFault as problem:
            return problem
        decide(run, link, instance, state)
    return None
