"""Tasks that run for cases besides the services; each ends with its case or with the server."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from mendflow.core.model.ids import CaseId
from mendflow.services.base.background_tasks import cancel_tasks


class CaseTasks:
    def __init__(self) -> None:
        self._tasks: dict[asyncio.Task[None], CaseId] = {}

    def begin(self, case: CaseId, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks[task] = case
        task.add_done_callback(self._tasks.pop)

    def case_ended(self, case: CaseId) -> None:
        """Cancel the tasks of a case that is over, except the current one, which may be the one that reports the
        end."""
        for task, asked in list(self._tasks.items()):
            if asked == case and task is not asyncio.current_task():
                task.cancel()

    async def stop(self) -> None:
        await cancel_tasks(*self._tasks)
