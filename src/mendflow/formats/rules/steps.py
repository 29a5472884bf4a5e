"""The steps of an exlet, found from its flow: primitives, worklets and calls. Whoever uses them tries them first."""

import re
from typing import Any, Final

from mendflow.core.model.expr import Expr
from mendflow.core.model.flow import Activity, Call, Flow, Mend, Parallel, Scope, Sequence
from mendflow.core.model.mending import Primitive
from mendflow.core.model.values import Value
from mendflow.formats.yaml.exlets import PLAIN, RESOURCES

UNITS: Final = {"memory_bytes": "B", "disk_bytes": "B", "wall_ms": "ms", "wait_ms": "ms"}
AIMED: Final = frozenset({Primitive.SUSPEND, Primitive.CONTINUE, Primitive.REMOVE})
HEADS: Final[dict[Primitive, str]] = {
    Primitive.WRITE: "values",
    Primitive.RESTAGE: "way",
    Primitive.RETRY_LATER: "level",
    Primitive.NOTIFY: "message",
}
"""The setting that stands behind a primitive's own word; the others are only marked."""

OUR_WORDS: Final = {ours: word for word, ours in PLAIN.items()}
RESOURCE_WORDS: Final = {ours: word for word, ours in RESOURCES.items()}
_UNNAMED: Final = re.compile(r"step-\d+")


class NoSteps(Exception):
    """Something that has no short form."""


def steps_of(flow: Flow) -> list[Value] | None:
    """The steps of an exlet in their short form, as far as all of them have one."""
    body = flow.body.body if isinstance(flow.body, Scope) else flow.body
    if not isinstance(body, Sequence) or not body.body:
        return None
    try:
        return [step(activity, count) for count, activity in enumerate(body.body, 1)]
    except NoSteps:
        return None


def step(activity: Activity, count: int) -> dict[str, Value]:
    match activity:
        case Mend():
            found = primitive(activity)
        case Call(flow=name, inputs=inputs, domain=domain):
            found = {"call": name, **({"with": inputs} if inputs else {}), **({"domain": domain} if domain else {})}
        case Sequence() if activity.name.endswith(".compensate"):
            found = compensate(activity)
        case _:
            raise NoSteps
    name = activity.name.removesuffix(".compensate")
    if name != f"step-{count}":
        found["name"] = name
    if isinstance(activity.when, Expr):
        found["if"] = activity.when.text
    return found


def primitive(mend: Mend) -> dict[str, Value]:
    settings = dict(mend.settings)
    found: dict[str, Value] = {str(mend.do): head(mend, settings)}
    if mend.item:
        found["item"] = mend.item
    if mend.do is Primitive.WRITE and mend.target != ("item" if mend.item else "case"):
        found["into"] = mend.target
    resources = settings.pop("resources", {})
    if not isinstance(resources, dict) or not set(resources) <= set(RESOURCE_WORDS):
        raise NoSteps
    found.update({RESOURCE_WORDS[name]: measured(name, value) for name, value in resources.items()})
    found.update({OUR_WORDS.get(name, name): measured(name, value) for name, value in settings.items()})
    return found


def head(mend: Mend, settings: dict[str, Value]) -> Value:
    if mend.do in AIMED:
        return mend.target
    value = settings.pop(HEADS[mend.do], True) if mend.do in HEADS else True
    return True if mend.do is Primitive.RETRY_LATER and value == 0 else value


def measured(name: str, value: Value) -> Value:
    """A size or a duration has its unit."""
    return f"{value} {UNITS[name]}" if name in UNITS and isinstance(value, int) else value


def compensate(sequence: Sequence) -> dict[str, Value]:
    together, *writes = sequence.body
    calls = together.branches if isinstance(together, Parallel) else (together,)
    alone = (sequence.name.removesuffix(".compensate"),) if len(calls) == 1 else ()
    found: dict[str, Any] = {"compensate": [worklet(call, alone) for call in calls]}
    if len(calls) == 1:
        found["compensate"] = found["compensate"][0]
    if not writes:
        return found
    if not all(isinstance(write, Mend) and write.do is Primitive.WRITE for write in writes):
        raise NoSteps
    values = [write.settings.get("values") for write in writes if isinstance(write, Mend)]
    everything = [f"${{{{ jobs.`{call.name}`.outputs }}}}" for call in calls]
    found["write"] = "all" if values == everything else values[0]
    return found


def worklet(call: Activity, alone: tuple[str, ...]) -> Value:
    """A worklet; where it is `alone`, that is its step's name, by which it may be called too."""
    if not isinstance(call, Call) or call.domain or (alone and call.inputs and not isinstance(call.inputs, dict)):
        raise NoSteps
    found: dict[str, Value] = {"call": call.flow, **({"with": call.inputs} if call.inputs else {})}
    named = bool(alone) and not _UNNAMED.fullmatch(alone[0])
    if call.name not in alone and (named or call.name != call.flow):
        found["name"] = call.name
    return call.flow if set(found) == {"call"} else found
