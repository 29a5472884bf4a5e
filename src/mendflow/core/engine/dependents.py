"""Which parts of a flow depend on others: what has to run again when one of them does.

A part depends on another if a link leads from the other, or from what the other is in, to it or to what it is in; in a
sequence, if it stands behind the other; in a loop whose iterations follow each other, if both are in it."""

from collections.abc import Collection, Iterable, Sequence
from typing import Final

from mendflow.core.engine.plan import WORK, Plan, PlanNode, ancestors, compile_flow
from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.flow import Flow

NAMES_SHOWN: Final = 20


def demand_names(flow: Flow, names: Sequence[str]) -> None:
    """Refuse names that nothing in the flow has."""
    if not names:
        return
    nodes = compile_flow(flow, taken=True).nodes
    known = {name for node in nodes for name in (node.name, node.shown)}
    if unknown := [name for name in names if name not in known]:
        jobs = ", ".join([node.shown for node in nodes if node.kind in WORK][:NAMES_SHOWN])
        raise InvalidRequest(
            f"flow {flow.name} has no job {unknown[0]} that could run again; it has {jobs}", field="again"
        )


def with_dependents(plan: Plan, names: Collection[str]) -> frozenset[int]:
    """The nodes of these names, all that is in them, and all that depends on them."""
    pending = [node.index for node in plan.nodes if node.name and (node.name in names or node.shown in names)]
    found: set[int] = set()
    while pending:
        node = plan.nodes[pending.pop()]
        if node.index not in found:
            found.add(node.index)
            pending += _inside(node)
            for each in (node, *ancestors(plan, node)):
                pending += _following(plan, each)
    return frozenset(found)


def _inside(node: PlanNode) -> Iterable[int]:
    handlers = (node.compensation, node.termination)
    return (*node.children, *node.catches, *node.messages, *node.alarms, *(each for each in handlers if each >= 0))


def _following(plan: Plan, node: PlanNode) -> list[int]:
    """What waits for the node: the targets of its links, and what stands behind it in a sequence. In a loop, a later
    iteration waits for the whole of the earlier one."""
    following = [plan.links[link].target for link, _ in node.sources]
    around = plan.nodes[node.parent] if node.parent >= 0 else None
    if around is not None and around.kind == "sequence":
        following += around.children[around.children.index(node.index) + 1 :] if node.index in around.children else ()
    if node.kind in ("while", "until"):
        following.append(node.index)
    return following
