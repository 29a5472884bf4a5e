"""The schedule that a flow has by its `on`, and what is wrong with it."""

from collections.abc import Iterator

from msgspec.structs import replace

from mendflow.core.data.input_types import planned_value_flaw
from mendflow.core.engine.activities.job_parts import amounts_at_start
from mendflow.core.model.flow import Flow
from mendflow.core.model.flow_triggers import ScheduleTrigger
from mendflow.core.model.schedules import ScheduleSpec
from mendflow.core.schedules.spec_checks import spec_flaws

_KEYS = {"catch_up": "catch-up"}


def spec_of_trigger(flow: str, trigger: ScheduleTrigger) -> ScheduleSpec:
    """A schedule of the flow's name."""
    return ScheduleSpec(
        name=flow,
        flow=flow,
        inputs=trigger.inputs,
        cron=trigger.cron,
        every_ms=trigger.every_ms,
        timezone=trigger.timezone,
        catch_up=trigger.catch_up,
        overlap=trigger.overlap,
        starts_at=trigger.starts_at,
        ends_at=trigger.ends_at,
    )


def schedule_trigger_flaws(flow: Flow, trigger: ScheduleTrigger) -> Iterator[tuple[tuple[str, ...], str]]:
    """The keys below `on.schedule`, and a sentence."""
    spec = replace(spec_of_trigger(flow.name, trigger), name="flow")  # whatever a flow may be called
    yield from (((_KEYS.get(field, field),), flaw) for field, flaw in spec_flaws(spec))
    for name, value in trigger.inputs.items():
        if name not in flow.inputs:
            there = ", ".join(flow.inputs) or "none"
            yield ("inputs", name), f"the flow has no input `{name}`; it has {there}"
        elif flaw := planned_value_flaw(flow.inputs[name], value):
            yield ("inputs", name), f"the input `{name}` is declared as `type: {flow.inputs[name].type}`; {flaw}"
    yield from ((("inputs",), flaw) for flaw in amounts_at_start(flow, trigger.inputs, planned=True))
    for name, each in flow.inputs.items():
        if each.required and name not in trigger.inputs:
            yield (
                ("inputs",),
                f"nobody gives the input `{name}` when a time is due; give it here, such as `inputs: {{{name}: ...}}`,"
                " or a `default:` under `inputs:` of the flow",
            )
