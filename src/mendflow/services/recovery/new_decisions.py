"""Makes the document of a decision from the event that it is about."""

from mendflow.core.model.ids import Instant
from mendflow.core.model.repair import Conclusion, Decision, ExceptionEvent
from mendflow.core.model.values import Value
from mendflow.services.recovery.contexts import bounded_context
from mendflow.services.recovery.decisions import signature_of


def decision_about(
    event: ExceptionEvent, context: dict[str, Value], conclusion: Conclusion | None, at: Instant, project: str
) -> Decision:
    """The decision about an event, under the event's id: its exlet runs, unless somebody says otherwise."""
    return Decision(
        id=event.id,
        case=event.case,
        flow=event.flow,
        type=event.type,
        at=at,
        state="running",
        item=event.item,
        task=event.task,
        serial=event.serial,
        engine=event.engine,
        project=project,
        job=event.job,
        fault=event.fault,
        signature=signature_of(event),
        exlet=conclusion.exlet if conclusion is not None else "",
        conclusion=conclusion,
        context=bounded_context(context),
    )
