"""Whether a rule whose exlet runs the job again would do so without end, for a job that always fails."""

from typing import Final

from mendflow.core.engine.plan import walk_activities
from mendflow.core.model.flow import Flow, PrimitiveStep
from mendflow.core.model.repair import Primitive
from mendflow.core.recovery.exlet_checks import SUBMITS
from mendflow.lazy import lazy_pattern

JOB_BOUND: Final = "job.generation <= 3"
RESTART_BOUND: Final = "item.attempts < 4"
_COUNTS: Final = lazy_pattern(
    r"\b(?:job\.(?:generation|failures|attempts|losses|level|sources_left)"
    r"|item\.attempts|fault\.retry_\w+|history\.|(?:case|item)\.age_ms\b)"
)


def bounded(condition: str) -> str:
    """The condition, also holding only for the first few submissions of a job."""
    if _COUNTS.search(condition):
        return condition
    return f"({condition}) && {JOB_BOUND}" if "||" in condition or "?" in condition else f"{condition} && {JOB_BOUND}"


def missing_bound(condition: str, exlet: Flow) -> str:
    """What the condition lacks to end some time, if the exlet runs the item again; else nothing."""
    steps = [each.do for each in walk_activities(exlet) if isinstance(each, PrimitiveStep)]
    again = [each for each in steps if each in SUBMITS]
    if not again or _COUNTS.search(condition):
        return ""
    return RESTART_BOUND if Primitive.RESTART in again else JOB_BOUND
