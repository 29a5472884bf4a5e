"""The part of the domain that is about user tasks.

Like the rest it answers only when what it says is on disk."""

from mendflow.core.model.ids import CaseId, ItemId
from mendflow.core.model.principals import EVERYTHING, Sight
from mendflow.core.model.values import Value
from mendflow.core.model.views import CaseTask, UserTaskView
from mendflow.services.api.domain_reader import LAST, DomainReader
from mendflow.services.cases.nested_tasks import NestedTasks


class TaskOperations(DomainReader):
    async def worklist(
        self, *, role: str = "", state: str = "", case: str = "", limit: int = 100, sight: Sight = EVERYTHING
    ) -> list[UserTaskView]:
        id = await self._id(case, sight=sight) if case else ""
        return await self._server.runtime.tasks.search(role=role, state=state, case=id, limit=limit, sight=sight)

    async def open_tasks(self, case: str, item: str = "") -> list[CaseTask]:
        """The open user tasks that end with an item; without one, with the case, if it is part of another."""
        runtime = self._server.runtime
        nested = NestedTasks(runtime.tasks, runtime.manager.live)
        return nested.inside(CaseId(case), ItemId(item) if item else None)

    async def user_task(self, task: str) -> UserTaskView:
        return (await self._server.runtime.tasks.find(await self._task_id(task))).view()

    async def claim(self, task: str, *, who: str) -> UserTaskView:
        return await self._answered(await self._server.runtime.tasks.claim(await self._task_id(task), who))

    async def release(self, task: str, *, who: str) -> UserTaskView:
        return await self._answered(await self._server.runtime.tasks.release(await self._task_id(task), who))

    async def complete(self, task: str, outputs: Value = None, *, who: str, comment: str = "") -> UserTaskView:
        id = await self._task_id(task)
        return await self._answered(await self._server.runtime.tasks.end(id, "completed", outputs, who, comment))

    async def reject(self, task: str, *, who: str, comment: str = "") -> UserTaskView:
        id = await self._task_id(task)
        return await self._answered(await self._server.runtime.tasks.end(id, "rejected", None, who, comment))

    async def _answered(self, view: UserTaskView) -> UserTaskView:
        await self._settled()
        return view

    async def _task_id(self, task: str) -> str:
        case, _, serial = task.rpartition("/")
        return f"{await self._id(case)}/{serial}" if case == LAST else task
