"""How often a rule whose exlet runs the job again would do so for a job that always fails."""

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


def missing_bounds(condition: str) -> dict[Primitive, str]:
    """What the condition lacks to end before REPAIRS_MAX, by the primitive that runs the item again. Of an exlet that
    has several of them, the first here counts."""
    if _COUNTS.search(condition):
        return {}
    others = sorted(SUBMITS - {Primitive.RESTART})
    return {Primitive.RESTART: RESTART_BOUND, **dict.fromkeys(others, JOB_BOUND)}


def missing_bound(condition: str, exlet: Flow) -> str:
    """What the condition lacks to end before REPAIRS_MAX, if the exlet runs the item again; else nothing."""
    steps = {each.do for each in walk_activities(exlet) if isinstance(each, PrimitiveStep)}
    return next((bound for primitive, bound in missing_bounds(condition).items() if primitive in steps), "")
