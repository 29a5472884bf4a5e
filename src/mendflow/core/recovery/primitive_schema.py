"""The primitives for an editor: what each does, where it makes sense, and the JSON Schema of its step.

The schema is made from the same table that exlets are checked by."""

from typing import Final

from mendflow.core.model.flow import Flow, PrimitiveStep
from mendflow.core.model.ids import FlowName
from mendflow.core.model.repair import ExceptionType, Primitive
from mendflow.core.model.rule_views import PrimitiveView
from mendflow.core.model.values import Value
from mendflow.core.recovery.exlet_checks import misplaced_steps
from mendflow.core.recovery.primitive_checks import DATA_KINDS, RESOURCE_KINDS, RESOURCE_NAMES, SETTINGS, WHOLE_CASES

ABOUT: Final[dict[Primitive, str]] = {
    Primitive.SUSPEND: "Suspend it until it is continued.",
    Primitive.CONTINUE: "Release what this exlet has suspended.",
    Primitive.REMOVE: "End it as cancelled; nothing more runs on its path.",
    Primitive.RESTART: "Run the item again, with its data as of its start.",
    Primitive.COMPLETE: "End the item as completed; what comes next runs.",
    Primitive.FAIL: "End the item as failed; the flow handles that, or the case fails.",
    Primitive.WRITE: "Put values into the case, or into the item's data.",
    Primitive.RESTAGE: "Stage the job's files again.",
    Primitive.RESUBMIT: "Submit the job again, changed as the settings say.",
    Primitive.REPOLL: "Ask again for the state of the job.",
    Primitive.REREGISTER: "Subscribe again to the end of the job.",
    Primitive.RETRY_LATER: "Wait in a retry level, then submit the job again.",
    Primitive.UNWIND: "Undo what the case has completed, the last first.",
    Primitive.NOTIFY: "Notify the administrator.",
}
ALL_TARGETS: Final = ("item", "case", "all-cases", "ancestors")
CASE_TARGETS: Final = ("item", "case")
EXPRESSION: Final[dict[str, Value]] = {
    "type": "string",
    "pattern": r"\$\{\{",
    "description": "an expression over the context, such as ${{ job.memory_bytes * 2 }}",
}


def primitive_views() -> list[PrimitiveView]:
    return [
        PrimitiveView(
            primitive=each,
            about=ABOUT[each],
            targets=list(targets_of(each)),
            types=[type for type in ExceptionType if makes_sense(each, type)],
            schema=step_schema(each),
        )
        for each in Primitive
    ]


def targets_of(do: Primitive) -> tuple[str, ...]:
    if do is Primitive.WRITE:
        return CASE_TARGETS
    return ALL_TARGETS if do in WHOLE_CASES else ("item",)


def makes_sense(do: Primitive, type: ExceptionType) -> bool:
    """Whether the primitive can do anything at this exception, to whatever it can be applied to."""
    settings: dict[str, Value] = {"values": {}} if do is Primitive.WRITE else {}
    steps = [
        PrimitiveStep(name="step", do=do, target=target, item=item, settings=settings)  # type: ignore[arg-type]  # one of Target
        for target in targets_of(do)
        for item in ("", "other")
    ]
    return any(not misplaced_steps(type, Flow(name=FlowName("tried"), body=step)) for step in steps)


def step_schema(do: Primitive) -> dict[str, Value]:
    settings = SETTINGS.get(do, frozenset())
    properties: dict[str, Value] = {
        "kind": {"const": "mend"},
        "name": {"type": "string", "description": "unique in the exlet"},
        "do": {"const": do.value},
        "when": {"description": "the step is skipped if this condition is false"},
    }
    if do not in (Primitive.UNWIND, Primitive.NOTIFY):
        properties["target"] = {"enum": list(targets_of(do)), "default": "item"}
        properties["item"] = {"type": "string", "description": "another item of the case than the one at hand"}
    if settings:
        properties["settings"] = {
            "type": "object",
            "properties": {name: {"anyOf": [setting_schema(name), EXPRESSION]} for name in sorted(settings)},
            "additionalProperties": False,
            **({"required": ["values"]} if do is Primitive.WRITE else {}),
        }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": do.value,
        "description": ABOUT[do],
        "type": "object",
        "properties": properties,
        "required": ["kind", "name", "do", *(["settings"] if do is Primitive.WRITE else [])],
    }


def setting_schema(name: str) -> dict[str, Value]:
    if name == "resources":
        number: dict[str, Value] = {"type": "number", "minimum": 0}
        known: dict[str, Value] = {
            each: {"anyOf": [RESOURCE_KINDS.get(each, number), EXPRESSION]} for each in RESOURCE_NAMES
        }
        known["avoid_hosts"] = {}  # a setting of its own
        return {"type": "object", "properties": known, "additionalProperties": False}
    return DATA_KINDS.get(name, {"description": "any value"})
