"""The worklist. Only somebody with a user task's role may claim it; the role is read from the task itself."""

from typing import Annotated

from litestar import Router, get, post
from litestar.params import JSONBody, QueryParameter

from mendflow.core.model.values import Value
from mendflow.core.model.views import UserTaskState, UserTaskView
from mendflow.server.access import Principal
from mendflow.server.routes.cases import RequestBody
from mendflow.server.routes.parameters import CaseName, Limit, Serial, Text, TheCaller, TheDomain
from mendflow.services.api.domain import Domain


class Completion(RequestBody, frozen=True):
    outputs: Value = None
    comment: str = ""


class Rejection(RequestBody, frozen=True):
    comment: str = ""


async def _allowed(domain: Domain, caller: Principal, case: str, serial: int) -> str:
    """The task's id, if the caller has its role."""
    task = await domain.user_task(f"{case}/{serial}")
    caller.require_task_role(task.role)
    return task.id


@get("/worklist", summary="The user tasks")
async def worklist(
    domain: TheDomain,
    role: Text = "",
    task_state: Annotated[UserTaskState | None, QueryParameter(name="state")] = None,
    case: Text = "",
    limit: Limit = 100,
) -> list[UserTaskView]:
    return await domain.worklist(role=role, state=task_state or "", case=case, limit=limit)


@get("/worklist/{case:str}/{serial:int}", summary="One user task")
async def user_task(domain: TheDomain, case: CaseName, serial: Serial) -> UserTaskView:
    return await domain.user_task(f"{case}/{serial}")


@post("/worklist/{case:str}/{serial:int}/claim", status_code=200, summary="Claim a user task")
async def claim(domain: TheDomain, caller: TheCaller, case: CaseName, serial: Serial) -> UserTaskView:
    return await domain.claim(await _allowed(domain, caller, case, serial), who=caller.name)


@post("/worklist/{case:str}/{serial:int}/release", status_code=200, summary="Give a claimed user task back")
async def release(domain: TheDomain, caller: TheCaller, case: CaseName, serial: Serial) -> UserTaskView:
    return await domain.release(await _allowed(domain, caller, case, serial), who=caller.name)


@post("/worklist/{case:str}/{serial:int}/complete", status_code=200, summary="Complete a user task with its outputs")
async def complete(
    domain: TheDomain, caller: TheCaller, case: CaseName, serial: Serial, data: JSONBody[Completion | None] = None
) -> UserTaskView:
    wish = data or Completion()
    id = await _allowed(domain, caller, case, serial)
    return await domain.complete(id, wish.outputs, who=caller.name, comment=wish.comment)


@post("/worklist/{case:str}/{serial:int}/reject", status_code=200, summary="Reject a user task")
async def reject(
    domain: TheDomain, caller: TheCaller, case: CaseName, serial: Serial, data: JSONBody[Rejection | None] = None
) -> UserTaskView:
    id = await _allowed(domain, caller, case, serial)
    return await domain.reject(id, who=caller.name, comment=(data or Rejection()).comment)


ROUTES = Router("/", route_handlers=[worklist, user_task, claim, release, complete, reject], tags=["worklist"])
