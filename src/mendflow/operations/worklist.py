"""The worklist. Only somebody with a user task's role may claim it; the role is read from the task itself."""

from typing import Annotated

from mendflow.core.model.parameters import Limit, OneOf
from mendflow.core.model.values import Value
from mendflow.core.model.views import UserTaskState, UserTaskView
from mendflow.operations.names import TaskName
from mendflow.operations.operation import Calls, operation
from mendflow.operations.roles import TASK_WORKERS, VIEWERS
from mendflow.operations.subjects import LISTED, TASK


class WorklistCalls(Calls, tag="worklist"):
    @operation("GET", "/worklist", VIEWERS, LISTED)
    async def worklist(
        self,
        *,
        role: str = "",
        state: Annotated[str, OneOf(UserTaskState)] = "",
        case: str = "",
        limit: Limit = 100,
    ) -> list[UserTaskView]:
        """The user tasks."""

    @operation("GET", "/worklist/{case}/{serial}", VIEWERS, TASK)
    async def user_task(self, task: TaskName) -> UserTaskView:
        """One user task."""

    @operation("POST", "/worklist/{case}/{serial}/claim", TASK_WORKERS, TASK)
    async def claim(self, task: TaskName) -> UserTaskView:
        """Claim a user task."""

    @operation("POST", "/worklist/{case}/{serial}/release", TASK_WORKERS, TASK)
    async def release(self, task: TaskName) -> UserTaskView:
        """Give a claimed user task back."""

    @operation("POST", "/worklist/{case}/{serial}/complete", TASK_WORKERS, TASK)
    async def complete(self, task: TaskName, outputs: Value = None, *, comment: str = "") -> UserTaskView:
        """Complete a user task with its outputs."""

    @operation("POST", "/worklist/{case}/{serial}/reject", TASK_WORKERS, TASK)
    async def reject(self, task: TaskName, *, comment: str = "") -> UserTaskView:
        """Reject a user task."""
