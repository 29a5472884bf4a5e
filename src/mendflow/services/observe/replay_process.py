"""The process that replays long journals: it is given their entries, and tells what the engine did."""

from mendflow.core.model.ids import CaseId
from mendflow.services.base.module_processes import serve_tasks
from mendflow.services.observe.journal_reader import JournalReader
from mendflow.services.observe.long_journals import ReplayedJournal, ReplayTask


class JournalReplay:
    """Keeps what it knows of the case of the last task."""

    def __init__(self) -> None:
        self._case = CaseId("")
        self._reader = JournalReader(self._case)

    def take(self, task: ReplayTask) -> ReplayedJournal:
        if task.anew or task.case != self._case:
            self._reader, self._case = JournalReader(task.case), task.case
        for entry in task.entries:
            self._reader.take(entry)
        if task.last is None:
            return ReplayedJournal()
        return ReplayedJournal(*self._reader.last_entries(task.last, brief=task.brief))


if __name__ == "__main__":
    serve_tasks(ReplayTask, JournalReplay().take)
