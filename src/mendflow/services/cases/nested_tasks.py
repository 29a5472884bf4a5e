"""The open user tasks that something has inside: who ends it ends them, and so needs their roles.

An item has those of itself, of the case that it called with all that this called, and of the exlets that mend it. A
case that was called, or that mends another, has those of itself and of all below it; who cancels it ends an item of
the case above. One that somebody has started is ended as a whole, with whatever waits in it, and goes on nowhere."""

from collections.abc import Mapping

from mendflow.core.model.ids import CaseId, ItemId
from mendflow.core.model.views import CaseTask
from mendflow.services.cases.live_case import LiveCase
from mendflow.services.cases.user_tasks import TaskDocument, UserTasks


class NestedTasks:
    def __init__(self, tasks: UserTasks, live: Mapping[CaseId, LiveCase]) -> None:
        self._tasks = tasks
        self._live = live

    def inside(self, case: CaseId, item: ItemId | None) -> list[CaseTask]:
        """Of an item of a case that lives here; of the case if no item is named."""
        below = self._tasks.open_below(case)
        if not below:
            return []
        if item is None:
            found = [] if self._is_whole(case) else below
        else:
            found = [task for task in below if self._item_above(case, task) == item]
        return [task.of_case() for task in found]

    def _is_whole(self, case: CaseId) -> bool:
        live = self._live.get(case)
        return live is None or (live.document.mends is None and not live.document.parent_serial)

    def _item_above(self, case: CaseId, task: TaskDocument) -> ItemId | None:
        """The item of this case that the task is inside of."""
        if task.case == case:
            return task.item
        step = task.case.removeprefix(f"{case}.").partition(".")[0]
        live = self._live.get(CaseId(f"{case}.{step}"))
        if live is None:
            return None
        return live.document.mends_item if live.document.mends is not None else live.document.parent_item
