"""User tasks that a case waits for, with the commands that answer them; and tasks by the names that people know."""

from mendflow.cli.printing import say
from mendflow.client import Client
from mendflow.core.model.errors import NotFound
from mendflow.core.model.ids import CaseId
from mendflow.core.model.views import UserTaskView
from mendflow.core.model.yes_no import is_yes_or_no
from mendflow.pages.formatting import one_line, short_time_text

OPEN_STATES = ("offered", "claimed")


class TaskReminder:
    """Tells of each task once."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._told: set[str] = set()

    async def look(self, case: CaseId) -> None:
        for task in await self._client.worklist(case=case, state="offered"):
            if task.id not in self._told:
                self._told.add(task.id)
                for line in task_lines(task):
                    say(line, err=True)


def task_lines(task: UserTaskView) -> list[str]:
    """What a person is asked, until when, and how it is answered."""
    until = f", until {short_time_text(task.deadline)}" if task.deadline else ""
    answers = "".join(f" -o {name}={'yes' if is_yes_or_no(text) else 'VALUE'}" for name, text in task.fields.items())
    return [
        f"waits for a person ({task.role}){until}: {one_line(task.title or task.item, 200)}",
        f"  answer with mendflow worklist complete {task.id}{answers}, or mendflow worklist reject {task.id}",
    ]


async def task_id(client: Client, text: str) -> str:
    """The id of a user task that is given by it, or as CASE:ITEM."""
    case, colon, item = text.partition(":")
    if not colon:
        return text
    found = [task for task in await client.worklist(case=case, limit=1000) if str(task.item) == item]
    waiting = [task for task in found if task.state in OPEN_STATES]
    if not found:
        raise NotFound(f"no user task of {case} is called {item}; `mendflow worklist --case {case}` lists them")
    return (waiting or found)[0].id
