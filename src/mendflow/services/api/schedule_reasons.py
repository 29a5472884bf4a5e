"""Why a schedule has started its last cases, or has not."""

from mendflow.core.model.schedules import ScheduleEvent, ScheduleView
from mendflow.core.model.views import Reason
from mendflow.core.schedules.due_times import DueTimes
from mendflow.core.schedules.spec_checks import when_text
from mendflow.services.schedules.zones import zone_named

EVENTS_SHOWN = 5


def why_schedule(view: ScheduleView) -> Reason:
    """What it waits for, and what became of the last due times."""
    times = DueTimes(view.spec, zone_named(view.spec.timezone))
    facts = [view.problem] if view.problem else []
    facts += [event_text(each, times) for each in view.history[:EVENTS_SHOWN]]
    if view.backfilling:
        facts.append(f"{view.backfilling} past times of a backfill are still to be started")
    return Reason(subject=view.spec.name, state=view.state, sentence=_sentence(view, times), facts=facts)


def _sentence(view: ScheduleView, times: DueTimes) -> str:
    name, flow = view.spec.name, view.spec.flow
    if view.state == "paused":
        return f"schedule {name} is paused and starts nothing; `mendflow schedules resume {name}` continues from then."
    if view.state == "waiting":
        cases = ", ".join(view.running)
        done = "was cancelled for that, and is ending" if view.spec.overlap == "replace" else "has not ended"
        return f"schedule {name} has a time that is due and waits for {cases}, which {done}; `mendflow why` says more."
    if not view.next:
        return f"schedule {name} is over: no time of `{when_text(view.spec)}` comes any more."
    when = f"{when_text(view.spec)}, {view.spec.timezone}"
    next_at = times.text(view.next[0])
    if view.not_served:
        return (
            f"schedule {name} ({when}) is due next at {next_at}, and starts no case of {flow} now: {view.not_served}."
        )
    return f"schedule {name} ({when}) starts {flow} next at {next_at}."


def event_text(event: ScheduleEvent, times: DueTimes) -> str:
    """What became of a due time, in a sentence."""
    due = times.text(event.due)
    those = f"the time {due}" if event.count == 1 else f"{event.count} times up to {due}"
    was = "was" if event.count == 1 else "were"
    match event.what:
        case "started":
            return f"{due}: case {event.case} was started"
        case "triggered":
            return f"{due}: case {event.case} was started by hand"
        case "known":
            return f"{due}: case {event.case} had been started before"
        case "missed":
            return f"{those} passed while no server ran, and {was} not caught up with"
        case "overlapped":
            case = f"case {event.case}" if event.case else "an earlier case"
            return f"{those} {was} left out, because {case} was still running"
        case "refused":
            return f"{due}: no case could be started: {event.reason}"
        case "paused":
            return f"{those} passed while it was paused"
