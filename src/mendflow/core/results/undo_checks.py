"""Whether what a job did may have been undone since: then its result says nothing about a new job's."""

from mendflow.core.engine import Case, item_of
from mendflow.core.engine.plan import COMPENSATION, TERMINATION


def can_be_undone(case: Case, serial: int) -> bool:
    """Whether the job can be compensated, or is part of a compensation or termination: then it has an effect elsewhere,
    which may have been undone since."""
    instance = item_of(case, serial)
    if instance is None:
        return False
    nodes = case.plan.nodes
    node = nodes[instance.node]
    while node.parent >= 0:
        node = nodes[node.parent]
        if node.kind in (COMPENSATION, TERMINATION) or node.compensation >= 0:
            return True
    return False
