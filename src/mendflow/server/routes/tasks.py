"""A person's work. Only somebody with the task's role may take it up; the role is asked of the task itself."""

from typing import Annotated

from litestar import get, post
from litestar.params import JSONBody, QueryParameter

from mendflow.core.model.values import Value
from mendflow.core.model.views import TaskState, TaskView
from mendflow.server.access import Caller
from mendflow.server.routes.cases import Wish
from mendflow.server.routes.given import CaseName, Limit, Serial, Text, TheCaller, TheDomain
from mendflow.services.api.domain import Domain


class Completion(Wish, frozen=True):
    outputs: Value = None
    comment: str = ""


class Rejection(Wish, frozen=True):
    comment: str = ""


async def _allowed(domain: Domain, caller: Caller, case: str, serial: int) -> str:
    """The task's id, if the caller has its role."""
    task = await domain.task(f"{case}/{serial}")
    caller.require_task_role(task.role)
    return task.id


@get("/tasks", summary="Tasks for people", operation_id="tasks", tags=["tasks"])
async def tasks(
    domain: TheDomain,
    role: Text = "",
    task_state: Annotated[TaskState | None, QueryParameter(name="state")] = None,
    case: Text = "",
    limit: Limit = 100,
) -> list[TaskView]:
    return await domain.tasks(role=role, state=task_state or "", case=case, limit=limit)


@get("/tasks/{case:str}/{serial:int}", summary="One task", operation_id="task", tags=["tasks"])
async def task(domain: TheDomain, case: CaseName, serial: Serial) -> TaskView:
    return await domain.task(f"{case}/{serial}")


@post(
    "/tasks/{case:str}/{serial:int}/claim",
    status_code=200,
    summary="Take a task up",
    operation_id="claim",
    tags=["tasks"],
)
async def claim(domain: TheDomain, caller: TheCaller, case: CaseName, serial: Serial) -> TaskView:
    return await domain.claim(await _allowed(domain, caller, case, serial), who=caller.name)


@post(
    "/tasks/{case:str}/{serial:int}/release",
    status_code=200,
    summary="Give a claimed task back",
    operation_id="release",
    tags=["tasks"],
)
async def release(domain: TheDomain, caller: TheCaller, case: CaseName, serial: Serial) -> TaskView:
    return await domain.release(await _allowed(domain, caller, case, serial), who=caller.name)


@post(
    "/tasks/{case:str}/{serial:int}/complete",
    status_code=200,
    summary="Complete a task with its outputs",
    operation_id="complete",
    tags=["tasks"],
)
async def complete(
    domain: TheDomain, caller: TheCaller, case: CaseName, serial: Serial, data: JSONBody[Completion | None] = None
) -> TaskView:
    wish = data or Completion()
    id = await _allowed(domain, caller, case, serial)
    return await domain.complete(id, wish.outputs, who=caller.name, comment=wish.comment)


@post(
    "/tasks/{case:str}/{serial:int}/reject",
    status_code=200,
    summary="Reject a task",
    operation_id="reject",
    tags=["tasks"],
)
async def reject(
    domain: TheDomain, caller: TheCaller, case: CaseName, serial: Serial, data: JSONBody[Rejection | None] = None
) -> TaskView:
    id = await _allowed(domain, caller, case, serial)
    return await domain.reject(id, who=caller.name, comment=(data or Rejection()).comment)


ROUTES = [tasks, task, claim, release, complete, reject]
