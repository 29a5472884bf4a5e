"""User tasks: offered to a role, claimed by one person, completed or rejected; after its deadline a task expires.

The server checks by roles who may do what; here is only what the task's state allows."""

from collections.abc import Awaitable, Callable, Collection

import msgspec

from mendflow.core.engine.messages import OfferTask
from mendflow.core.model.errors import Conflict, NotFound
from mendflow.core.model.faults import REJECTED, Category, Fault
from mendflow.core.model.ids import CaseId, Instant, ItemId
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.principals import DEFAULT_PROJECT, EVERYTHING, Sight
from mendflow.core.model.values import Value
from mendflow.core.model.views import CaseTask, UserTaskState, UserTaskView
from mendflow.core.model.yes_no import answer, is_yes_or_no
from mendflow.services.base.cluster import root_of
from mendflow.services.base.contracts import Clock
from mendflow.services.base.events import EventStream
from mendflow.services.base.ledger import Ledger
from mendflow.services.base.readable_documents import read_or_leave_out, readable
from mendflow.services.base.visibility import in_sight
from mendflow.services.cases.earlier_tasks import NO_GROUNDS
from mendflow.stores.contract import FieldCondition, Store, StoredDocument

TASK_KIND = "task"
ANSWERS_READ_MAX = 1000
OPEN_STATES: tuple[UserTaskState, ...] = ("offered", "claimed")
Finished = Callable[[CaseId, int, Outcome], Awaitable[None]]


class TaskDocument(msgspec.Struct, kw_only=True):
    id: str
    case: CaseId
    item: ItemId
    serial: int
    role: str
    title: str
    description: str = ""
    data: Value = None
    fields: dict[str, str] = {}
    state: UserTaskState = "offered"
    offered_at: Instant = 0
    deadline: Instant = 0
    claimed_by: str = ""
    ended_at: Instant = 0
    ended_by: str = ""
    outputs: Value = None
    comment: str = ""
    element: str = ""
    project: str = DEFAULT_PROJECT
    grounds: str = NO_GROUNDS  # what an answer holds for, besides what is asked

    def of_case(self) -> CaseTask:
        """In a few words, as its case shows it."""
        return CaseTask(
            id=self.id,
            case=self.case,
            item=self.item,
            title=self.title or self.item,
            role=self.role,
            claimed_by=self.claimed_by if self.state == "claimed" else "",
        )

    def view(self) -> UserTaskView:
        return UserTaskView(
            id=self.id,
            case=self.case,
            item=self.item,
            role=self.role,
            title=self.title,
            description=self.description,
            data=self.data,
            fields=self.fields,
            state=self.state,
            offered_at=self.offered_at,
            element=self.element,
            deadline=self.deadline,
            claimed_by=self.claimed_by,
            ended_at=self.ended_at,
            ended_by=self.ended_by,
            outputs=self.outputs,
            comment=self.comment,
        )


_decode = msgspec.json.Decoder(TaskDocument).decode


class UserTasks:
    """`is_suspended` says whether the item of a task, or its case, is suspended."""

    def __init__(
        self,
        *,
        store: Store,
        ledger: Ledger,
        clock: Clock,
        events: EventStream,
        finished: Finished,
        is_suspended: Callable[[CaseId, ItemId], bool],
    ) -> None:
        self._is_suspended = is_suspended
        self._store = store
        self._ledger = ledger
        self._clock = clock
        self._events = events
        self._finished = finished
        self._open: dict[str, TaskDocument] = {}
        self._open_in_tree: dict[CaseId, dict[str, TaskDocument]] = {}  # the same, by the root of their cases

    async def resume(self, roots: Collection[CaseId]) -> None:
        """After these trees of cases were loaded: withdraw the tasks that none of them has offered again. A crash came
        between the end of the item and the write of the task."""
        for root in roots:
            async for found in self._store.scan(TASK_KIND, root):
                if found.id not in self._open and root_of(found.id) == root:
                    self._withdraw_if_open(found)

    def _withdraw_if_open(self, found: StoredDocument) -> None:
        task = read_or_leave_out(found, _decode)
        if task is not None and task.state in OPEN_STATES:
            self._ledger.known(TASK_KIND, found.id, found.version)
            task.state, task.ended_at = "withdrawn", self._clock.now()
            self._write(task)

    async def offer(
        self,
        case: CaseId,
        order: OfferTask,
        element: str,
        project: str = DEFAULT_PROJECT,
        *,
        reissued: bool,
        earlier: CaseId | None = None,
        grounds: str = NO_GROUNDS,
    ) -> Outcome | None:
        """Offer the task, which is for this element of the loops around it, and of the project of its case. If it was
        offered before and is over already, its outcome is returned; so is the answer that the same task got
        in an earlier case on the same grounds."""
        id = f"{case}/{order.serial}"
        if reissued and (kept := await self._store.get(TASK_KIND, id)) is not None:
            self._ledger.known(TASK_KIND, id, kept.version)
            task = _decode(kept.body)
            if task.state not in OPEN_STATES:
                return outcome_of(task)
            self._keep_open(task)
            self.rewrite(case, order)
            return None
        answered = await self._answered(earlier, order, grounds) if earlier is not None else None
        task = TaskDocument(
            id=id,
            case=case,
            item=order.item,
            serial=order.serial,
            role=order.role,
            title=order.title,
            description=order.description,
            data=order.data,
            fields=order.fields,
            offered_at=self._clock.now(),
            deadline=order.deadline,
            element=element,
            project=project,
            grounds=grounds,
        )
        self._keep_open(task)
        if answered is not None:
            task.state, task.ended_by, task.outputs = "completed", answered.ended_by, answered.outputs
            task.ended_at = self._clock.now()
            task.comment = f"kept from case {earlier}: {answered.comment}".rstrip(": ")
        self._write(task)
        return outcome_of(task) if answered is not None else None

    def _keep_open(self, task: TaskDocument) -> None:
        self._open[task.id] = task
        self._open_in_tree.setdefault(root_of(task.id), {})[task.id] = task

    def _forget(self, id: str) -> None:
        self._open.pop(id, None)
        tree = self._open_in_tree.get(root_of(id), {})
        tree.pop(id, None)
        if not tree:
            self._open_in_tree.pop(root_of(id), None)

    def rewrite(self, case: CaseId, order: OfferTask) -> None:
        """What an open task asks for has changed: rules have written into its item."""
        task = self._open.get(f"{case}/{order.serial}")
        wanted = (order.title, order.description, order.data, order.fields)
        if task is None or wanted == (task.title, task.description, task.data, task.fields):
            return
        task.title, task.description, task.data, task.fields = wanted
        self._write(task)

    async def _answered(self, case: CaseId, order: OfferTask, grounds: str) -> TaskDocument | None:
        """The task of this case that was completed and asked for the same, on the same grounds."""
        if grounds == NO_GROUNDS:
            return None
        where = [FieldCondition("case", case), FieldCondition("state", "completed")]
        await self._ledger.settled()
        for found in await self._store.search(TASK_KIND, where, limit=ANSWERS_READ_MAX):
            task = _decode(found.body)
            asked = (task.item, task.role, task.title, task.description, task.data, task.fields)
            if task.grounds == grounds and asked == (
                order.item,
                order.role,
                order.title,
                order.description,
                order.data,
                order.fields,
            ):
                return task
        return None

    async def withdraw(self, case: CaseId, serial: int, reason: str = "") -> UserTaskState:
        """The case no longer wants it: its deadline passed, or its branch was ended. Returns how it ended."""
        task = self._open.get(f"{case}/{serial}")
        if task is None or task.state not in OPEN_STATES:
            return "withdrawn" if task is None else task.state
        now = self._clock.now()
        task.state = "expired" if task.deadline and now >= task.deadline else "withdrawn"
        task.ended_at = now
        task.comment = task.comment or reason
        self._write(task)
        return task.state

    async def find(self, id: str) -> TaskDocument:
        task = self._open.get(id)
        if task is None:
            await self._ledger.settled()
            kept = await self._store.get(TASK_KIND, id)
            if kept is None:
                raise NotFound(f"there is no task {id}; `mendflow worklist` lists them")
            task = _decode(kept.body)
        return task

    def open_below(self, case: CaseId) -> list[TaskDocument]:
        """The open tasks of a case that lives here, and of those that it called: the oldest first."""
        tree = self._open_in_tree.get(root_of(case), {}).values()
        found = [task for task in tree if task.case == case or task.case.startswith(f"{case}.")]
        return sorted(found, key=lambda task: task.offered_at)

    async def search(
        self, *, role: str, state: str, case: str, limit: int, sight: Sight = EVERYTHING
    ) -> list[UserTaskView]:
        wanted = {"role": role, "state": state, "case": case}
        where = [FieldCondition(field, value) for field, value in wanted.items() if value]
        where += in_sight(sight)
        await self._ledger.settled()
        found = await self._store.search(TASK_KIND, where, order_by="offered_at", descending=True, limit=limit)
        return [task.view() for task in readable(found, _decode)]

    async def claim(self, id: str, who: str) -> UserTaskView:
        task = await self._open_task(id)
        if task.state == "claimed" and task.claimed_by != who:
            raise Conflict(f"task {id} is claimed by {task.claimed_by}; ask for its release first")
        task.state, task.claimed_by = "claimed", who
        self._write(task, from_outside=True)
        return task.view()

    async def release(self, id: str, who: str) -> UserTaskView:
        task = await self._open_task(id)
        if task.claimed_by and task.claimed_by != who:
            raise Conflict(f"task {id} is claimed by {task.claimed_by}, who alone can release it")
        task.state, task.claimed_by = "offered", ""
        self._write(task, from_outside=True)
        return task.view()

    async def end(self, id: str, state: UserTaskState, outputs: Value, who: str, comment: str) -> UserTaskView:
        """Complete or reject. Ending an unclaimed task claims it."""
        task = await self._open_task(id)
        if task.state == "claimed" and task.claimed_by != who:
            raise Conflict(f"task {id} is claimed by {task.claimed_by}; ask for its release first")
        if self._is_suspended(task.case, task.item):
            raise Conflict(
                f"task {id} is suspended, so it cannot be {state} now;"
                f" `mendflow why {task.case}:{task.item}` says by whom"
            )
        missing = [name for name in task.fields if not isinstance(outputs, dict) or name not in outputs]
        if state == "completed" and missing:
            raise Conflict(f"task {id} wants a value for {', '.join(missing)}; nothing was changed")
        if state == "completed" and isinstance(outputs, dict):
            outputs = with_answers(task, outputs)
        task.state, task.ended_by, task.comment, task.outputs = state, who, comment, outputs
        task.ended_at = self._clock.now()
        self._write(task, from_outside=True)
        await self._finished(task.case, task.serial, outcome_of(task))
        return task.view()

    async def _open_task(self, id: str) -> TaskDocument:
        task = await self.find(id)
        if task.state not in OPEN_STATES:
            by = f" by {task.ended_by}" if task.ended_by else ""
            raise Conflict(f"task {id} is over: {task.state}{by}")
        return task

    def _write(self, task: TaskDocument, *, from_outside: bool = False) -> None:
        over = task.state not in OPEN_STATES
        self._ledger.touch(TASK_KIND, task.id, task, last=over, from_outside=from_outside)
        if over:
            self._forget(task.id)
        self._events.tell(self._clock.now(), "user-task", task.case, task.item, state=task.state, message=task.title)


def with_answers(task: TaskDocument, outputs: dict[str, Value]) -> dict[str, Value]:
    """The outputs, with true or false for what is asked to be answered by yes or no."""
    asked = [name for name, description in task.fields.items() if is_yes_or_no(description)]
    answers = {name: answer(outputs[name]) for name in asked}
    for name in asked:
        if answers[name] is None:
            raise Conflict(f"task {task.id} wants yes or no for {name}, not {outputs[name]!r:.60}; nothing was changed")
    return {**outputs, **answers}


def outcome_of(task: TaskDocument) -> Outcome:
    if task.state == "completed":
        return Outcome(outputs=task.outputs)
    by = f" by {task.ended_by}" if task.ended_by else ""
    ended = "has expired" if task.state == "expired" else f"was {task.state}{by}"
    words = f"{task.title or task.item} {ended}" + (f": {task.comment}" if task.comment else "")
    by = task.ended_by if task.state == "rejected" else ""
    fault = Fault(name=REJECTED, category=Category.FLOW, message=words, data={"by": task.ended_by}, rejected_by=by)
    return Outcome(fault=fault)
