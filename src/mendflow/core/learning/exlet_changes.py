"""What an exlet changes of a job before it is tried again, and which failures such a change is an answer to.

This is all that learning knows before anything was tried: more memory is an answer to too little memory, another host
to a host that is broken. What has been tried counts more than this from the second time on."""

from collections.abc import Mapping
from typing import Final, Literal

from mendflow.core.engine.plan import walk_activities
from mendflow.core.model.faults import Category
from mendflow.core.model.flow import Assign, Empty, Flow, PrimitiveStep, Scope, Sequence, Wait
from mendflow.core.model.repair import Primitive
from mendflow.core.model.values import Value

ExletChange = Literal["memory", "time", "host", "domain", "replica", "files", "poll", "wait", "nothing", "unknown"]

REPAIRS: Final = frozenset(
    {Primitive.RESUBMIT, Primitive.RETRY_LATER, Primitive.RESTAGE, Primitive.REPOLL, Primitive.REREGISTER}
)
"""Primitives that try a job again, or ask for it. An exlet with any other is proposed only if people have used it: it
removes, undoes, forces or writes something, which is for people to decide."""
HARMLESS: Final = REPAIRS | {Primitive.NOTIFY}
TRIES_MAX: Final = 3
"""A proposed rule repairs a job no more often than this."""

ANSWERS: Final[Mapping[Category, tuple[ExletChange, ...]]] = {
    Category.NETWORK: ("poll", "domain", "wait"),
    Category.SCHEDULER_DOWN: ("domain", "wait"),
    Category.REFUSED: ("domain", "wait"),
    Category.RESOURCE: ("host", "domain", "wait"),
    Category.DATA: ("replica", "files", "wait"),
    Category.OUTPUT: ("files", "wait"),
    Category.CLEANUP: ("host", "wait"),
    Category.MEMORY: ("memory",),
    Category.TIME: ("time",),
    Category.JOB: ("host",),
    Category.INPUT: ("host",),
}
"""By what a failure is about: which changes are an answer to it, the cheapest first."""

STAGING_CHANGES: Final[Mapping[str, ExletChange]] = {
    "replica": "replica",
    "same": "files",
    "parameters": "files",
    "target": "host",
}

_COMMON: Final = f'job.id != "" && job.final && job.generation <= {TRIES_MAX}'
GUARDS: Final[Mapping[ExletChange, str]] = {
    "memory": f'job.id != "" && job.generation <= {TRIES_MAX} && job.memory_bytes > 0 && '
    "(capacity.largest.memory_bytes == 0 || job.memory_bytes < capacity.largest.memory_bytes)",
    "time": f'job.id != "" && job.generation <= {TRIES_MAX} && job.wall_ms > 0',
    "host": f'job.id != "" && fault.name != "lost" && job.generation <= {TRIES_MAX} && job.host != "" && '
    "capacity.hosts > size(job.avoid_hosts) + 1",
    "domain": f"{_COMMON} && size(capacity.domains) >= job.generation",
    "replica": f"{_COMMON} && job.generation <= job.sources_left",
    "files": f"{_COMMON} && job.generation == 1",
    "poll": 'job.id != "" && job.stage in ["polling", "notification"] && history.case.of_task < 50',
    "wait": f"{_COMMON} && job.level < capacity.levels",
    "nothing": _COMMON,
}
"""Where an exlet can be carried out at all, and how often. Nothing that is proposed goes on for ever."""


def change_of_exlet(exlet: Flow) -> ExletChange:
    """What an exlet changes; `unknown` if it does more than try a job again in some way."""
    found: list[ExletChange] = []
    for activity in walk_activities(exlet):
        if not isinstance(activity, PrimitiveStep | Scope | Sequence | Wait | Assign | Empty):
            return "unknown"
        if not isinstance(activity, PrimitiveStep):
            continue
        if activity.do not in HARMLESS or activity.target != "item":
            return "unknown"
        if activity.do in REPAIRS:
            found.append(_change_of_step(activity))
    return found[0] if len(found) == 1 else "unknown"


def _change_of_step(step: PrimitiveStep) -> ExletChange:
    settings: dict[str, Value] = dict(step.settings)
    resources = settings.get("resources")
    if step.do in (Primitive.REPOLL, Primitive.REREGISTER):
        return "poll"
    if step.do is Primitive.RESTAGE:
        return STAGING_CHANGES.get(str(settings.get("way", "same")), "unknown")
    changes: list[ExletChange] = []
    if isinstance(resources, dict):
        changes += ["memory"] if "memory_bytes" in resources else []
        changes += ["time"] if "wall_ms" in resources else []
    changes += ["host"] if settings.get("avoid_hosts") else []
    changes += ["domain"] if settings.get("domain") else []
    if set(settings) - {"resources", "avoid_hosts", "domain", "level", "mode", "wait_ms"} or len(changes) > 1:
        return "unknown"
    if changes:
        return changes[0]
    return "wait" if step.do is Primitive.RETRY_LATER else "nothing"


def is_same_again(change: ExletChange) -> bool:
    """Whether nothing but the time changes."""
    return change in ("wait", "nothing", "files")
