"""Whether the result of an earlier job can be used for a new one, and if not, why not.

It can if the earlier job completed and everything that it depends on is the same: command or function, arguments,
environment, inputs by their content, declared outputs. What a command reads without declaring it cannot be checked."""

from typing import Protocol

import msgspec

from mendflow.core.model.ids import ItemId
from mendflow.core.model.jobs import Job, JobSpec, JobState, Outcome, sources_of
from mendflow.core.model.values import FileRef
from mendflow.core.scheduling import jobs as job_lifecycle
from mendflow.services.base.contracts import Clock, FileStore, NewJob
from mendflow.services.base.events import EventStream
from mendflow.services.base.ledger import Ledger
from mendflow.services.cases.live_case import LiveCase, name_of

_CHANGE_SENTENCES = {
    "command": "its command changed",
    "shell": "its shell changed",
    "function": "its function or the code around it changed",
    "args": "its arguments changed",
    "kwargs": "its arguments changed",
    "env": "its environment changed",
    "files": "its declared output files changed",
    "file_lists": "its declared output files changed",
    "publish": "what it publishes changed",
}


def why_not(earlier: Job | None, spec: JobSpec) -> str:
    """The reason why the earlier result cannot be used; empty if it can."""
    if earlier is None:
        return "the earlier case had no such item"
    if earlier.state is not JobState.COMPLETED or earlier.outcome is None:
        return "it did not complete in the earlier case"
    return difference(earlier.spec, spec)


def difference(before: JobSpec, after: JobSpec) -> str:
    """The difference between the jobs that would change the result; empty if there is none."""
    for field, words in _CHANGE_SENTENCES.items():
        if getattr(before, field) != getattr(after, field):
            return words
    for path in sorted(before.inputs.keys() | after.inputs.keys()):
        old, new = before.inputs.get(path), after.inputs.get(path)
        if old is None or new is None:
            return f"its inputs changed: {path} is {'new' if old is None else 'gone'}"
        if old.sha256 != new.sha256:
            return f"its input {path} has other content"
        if old.executable != new.executable:
            return f"its input {path} {'may be executed now' if new.executable else 'may not be executed any more'}"
    elsewhere = before.replicas.keys() | after.replicas.keys()
    for path in sorted(elsewhere - before.inputs.keys()):
        if set(sources_of(before, path)) != set(sources_of(after, path)):
            return f"its input {path} has other sources"
    return ""


class LogicalFiles(Protocol):
    async def has(self, ref: FileRef) -> bool:
        """Whether the catalogue still has this file."""
        ...


class ResultCache:
    """Reuses results of an earlier case, and records why, or why not."""

    def __init__(
        self, file_store: FileStore, catalogue: LogicalFiles, ledger: Ledger, clock: Clock, events: EventStream
    ) -> None:
        self._file_store = file_store
        self._catalogue = catalogue
        self._ledger = ledger
        self._clock = clock
        self._events = events

    async def take_over(self, live: LiveCase, new: NewJob) -> Outcome | None:
        """The earlier outcome, if it can be used for the new job."""
        item = new.spec.item
        earlier = live.earlier.get(item)
        reason = why_not(earlier, new.spec) or await self._missing_file(earlier)
        if reason or earlier is None or earlier.outcome is None:
            live.reasons[item] = f"run again: {reason}"
            return None
        outcome = msgspec.structs.replace(earlier.outcome, cached_from=earlier.outcome.cached_from or earlier.id)
        now = self._clock.now()
        job = job_lifecycle.create(new.id, new.case, new.spec, now=now)
        why = f"cached: job {earlier.id} has the same command, inputs and settings"
        for event in job_lifecycle.take_over(job, outcome, why=why, now=now):
            job_lifecycle.evolve(job, event)
        self._ledger.touch("job", new.id, job, last=True)
        live.move(int(new.id.rpartition("/")[2]), name_of(item), "job", "cached")
        self._events.tell(now, "item", live.id, ItemId(item), state="cached", message=job.cache_reason)
        return outcome

    async def _missing_file(self, earlier: Job | None) -> str:
        if earlier is not None and earlier.outcome is not None:
            listed = [(name, ref) for name, refs in earlier.outcome.file_lists.items() for ref in refs]
            for name, ref in (*earlier.outcome.files.items(), *listed):
                if ref.logical:
                    if not await self._catalogue.has(ref):
                        return f"its file {name} is no longer in the catalogue"
                elif await self._file_store.size(ref.sha256) is None:
                    return f"its file {name} is no longer stored"
        return ""
