"""The process that does long steps of cases: it is given a case and an event, and gives back what comes of them."""

from typing import Final

import msgspec

from mendflow.core.engine import Case, evolve, evolve_new, snapshot
from mendflow.core.engine.messages import Event
from mendflow.core.engine.state import restore
from mendflow.services.base.module_processes import serve_tasks
from mendflow.services.cases.long_steps import StepResult, StepTask

_decode_event: Final = msgspec.json.Decoder(Event).decode


def apply(task: StepTask) -> StepResult:
    try:
        case = restore(task.state) if task.state else Case.blank()
        for entry in task.entries:
            evolve(case, _decode_event(entry))
        event, orders = evolve_new(case, task.event) if task.event is not None else (None, [])
    except Exception as error:  # noqa: BLE001 - a case that cannot continue must not affect the others
        return StepResult(problem=f"{error!r:.300}")
    return StepResult(snapshot(case), event, orders, case.meter.work)


if __name__ == "__main__":
    serve_tasks(StepTask, apply)
