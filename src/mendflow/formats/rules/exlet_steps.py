"""Derives the steps of an exlet from its flow: primitives, worklets, calls and commands. Callers verify them."""

import re
from typing import Any, Final

import msgspec

from mendflow.core.model.expr import Expr
from mendflow.core.model.flow import (
    Activity,
    Call,
    Flow,
    JobActivity,
    Parallel,
    PrimitiveStep,
    Scope,
    Sequence,
)
from mendflow.core.model.repair import Primitive
from mendflow.core.model.values import Value
from mendflow.formats.yaml.exlets import PLAIN, PUBLISHING, RESOURCES
from mendflow.formats.yaml.job_steps import UNSTATED_CPUS

UNITS: Final = {"memory_bytes": "B", "disk_bytes": "B", "wall_ms": "ms", "wait_ms": "ms"}
TARGETED: Final = frozenset({Primitive.SUSPEND, Primitive.CONTINUE, Primitive.REMOVE})
HEADS: Final[dict[Primitive, str]] = {
    Primitive.WRITE: "values",
    Primitive.RESTAGE: "way",
    Primitive.RETRY_LATER: "level",
    Primitive.NOTIFY: "message",
}
"""The setting that stands behind a primitive's own word; the others are only marked."""

OUR_WORDS: Final = {ours: word for word, ours in {**PLAIN, **PUBLISHING}.items()}
RESOURCE_WORDS: Final = {ours: word for word, ours in RESOURCES.items()}
_UNNAMED: Final = re.compile(r"step-\d+")


class NoShortForm(Exception):
    """Something that has no short form."""


def steps_of(flow: Flow) -> list[Value] | None:
    """The steps of an exlet in their short form, as far as all of them have one."""
    body = flow.body.body if isinstance(flow.body, Scope) else flow.body
    if not isinstance(body, Sequence) or not body.body:
        return None
    try:
        return [short_step(activity, count) for count, activity in enumerate(body.body, 1)]
    except NoShortForm:
        return None


def short_step(activity: Activity, count: int) -> dict[str, Value]:
    match activity:
        case PrimitiveStep():
            found = short_primitive(activity)
        case JobActivity():
            found = short_command(activity)
        case Call(flow=name, inputs=inputs, domain=domain):
            found = {"call": name, **({"with": inputs} if inputs else {}), **({"domain": domain} if domain else {})}
        case Sequence() if activity.name.endswith(".compensate"):
            found = short_compensation(activity)
        case _:
            raise NoShortForm
    name = activity.name.removesuffix(".compensate")
    if name != f"step-{count}":
        found["name"] = name
    if isinstance(activity.when, Expr):
        found["if"] = activity.when.text
    return found


def short_command(job: JobActivity) -> dict[str, Value]:
    """A command with its environment and resources; what else a job may have is met when the steps are read back."""
    if job.command is None:
        raise NoShortForm
    found: dict[str, Value] = {"run": job.command}
    found.update({key: value for key, value in (("shell", job.shell), ("env", dict(job.env))) if value})
    resources = msgspec.to_builtins(job.resources)
    changed = {name: value for name, value in resources.items() if (name, value) != ("cpus", UNSTATED_CPUS)}
    if not set(changed) <= set(RESOURCE_WORDS):
        raise NoShortForm
    found.update({RESOURCE_WORDS[name]: with_unit(name, value) for name, value in changed.items()})
    return found


def short_primitive(mend: PrimitiveStep) -> dict[str, Value]:
    settings = dict(mend.settings)
    found: dict[str, Value] = {str(mend.do): primitive_head(mend, settings)}
    if mend.item:
        found["item"] = mend.item
    if mend.do is Primitive.WRITE and mend.target != ("item" if mend.item else "case"):
        found["into"] = mend.target
    resources = settings.pop("resources", {})
    if not isinstance(resources, dict) or not set(resources) <= set(RESOURCE_WORDS):
        raise NoShortForm
    found.update({RESOURCE_WORDS[name]: with_unit(name, value) for name, value in resources.items()})
    found.update({OUR_WORDS.get(name, name): with_unit(name, value) for name, value in settings.items()})
    return found


def primitive_head(mend: PrimitiveStep, settings: dict[str, Value]) -> Value:
    if mend.do in TARGETED:
        return mend.target
    value = settings.pop(HEADS[mend.do], True) if mend.do in HEADS else True
    return True if mend.do is Primitive.RETRY_LATER and value == 0 else value


def with_unit(name: str, value: Value) -> Value:
    """A size or a duration has its unit."""
    return f"{value} {UNITS[name]}" if name in UNITS and isinstance(value, int) else value


def short_compensation(sequence: Sequence) -> dict[str, Value]:
    together, *writes = sequence.body
    calls = together.branches if isinstance(together, Parallel) else (together,)
    alone = (sequence.name.removesuffix(".compensate"),) if len(calls) == 1 else ()
    found: dict[str, Any] = {"compensate": [short_worklet(call, alone) for call in calls]}
    if len(calls) == 1:
        found["compensate"] = found["compensate"][0]
    if not writes:
        return found
    if not all(isinstance(write, PrimitiveStep) and write.do is Primitive.WRITE for write in writes):
        raise NoShortForm
    values = [write.settings.get("values") for write in writes if isinstance(write, PrimitiveStep)]
    everything = [f"${{{{ jobs.`{call.name}`.outputs }}}}" for call in calls]
    found["write"] = "all" if values == everything else values[0]
    return found


def short_worklet(call: Activity, alone: tuple[str, ...]) -> Value:
    """A worklet; where it is `alone`, that is its step's name, by which it may be called too."""
    if not isinstance(call, Call) or call.domain or (alone and call.inputs and not isinstance(call.inputs, dict)):
        raise NoShortForm
    found: dict[str, Value] = {"call": call.flow, **({"with": call.inputs} if call.inputs else {})}
    named = bool(alone) and not _UNNAMED.fullmatch(alone[0])
    if call.name not in alone and (named or call.name != call.flow):
        found["name"] = call.name
    return call.flow if set(found) == {"call"} else found
