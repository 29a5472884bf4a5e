"""Whether what a job did may have been undone since: then its result says nothing about a new job's."""

from mendflow.core.engine import Case
from mendflow.core.engine.plan import COMPENSATION, TERMINATION
from mendflow.core.engine.state import Item


def can_be_undone(case: Case, serial: int) -> bool:
    """Whether the job can be compensated, or is part of a compensation or termination: then it has an effect elsewhere,
    which may have been undone since."""
    instance = case.instances.get(case.index.serials.get(serial, 0))
    if not isinstance(instance, Item):
        return False
    nodes = case.plan.nodes
    node = nodes[instance.node]
    while node.parent >= 0:
        node = nodes[node.parent]
        if node.kind in (COMPENSATION, TERMINATION) or node.compensation >= 0:
            return True
    return False
