"""The history of a case: what its engine did, what pilots and people did, and what was decided, in one order.

Who wants the last entries of a long one is not made to wait until all of it was read: only the jobs that were at work
since the first of these are. Without what the engine ordered, not even the journal is replayed."""

from collections.abc import AsyncIterator, Collection, Iterable, Iterator
from typing import Final

import msgspec

from mendflow.core.model.ids import Instant, JobId
from mendflow.core.model.jobs import Job, JobState
from mendflow.core.model.repair import Decision
from mendflow.core.model.repair_views import HistoryEntry
from mendflow.core.model.values import Value
from mendflow.core.recovery.conversation import Conversation
from mendflow.core.recovery.ids import generation_of, serial_of
from mendflow.core.recovery.redaction import redact
from mendflow.services.base.cluster import JOB_KIND
from mendflow.services.cases.live_case import CaseDocument
from mendflow.services.cases.user_tasks import TASK_KIND, TaskDocument
from mendflow.services.observe import history
from mendflow.services.observe.history_order import merge_entries
from mendflow.services.observe.recent_facts import RecentFacts, recent_facts
from mendflow.services.recovery.proxy.conversations import CONVERSATION_KIND
from mendflow.services.runtime.server import Server
from mendflow.stores.contract import FieldCondition, Store, StoredDocument

BESIDE: Final = 50
"""So many entries more are read than were asked for: what belongs to the same instant stands together."""
PAGE: Final = 1_000
ANSWER_CHARS: Final = 200

_decode_job = msgspec.json.Decoder(Job).decode
_decode_talk = msgspec.json.Decoder(Conversation).decode
_decode_task = msgspec.json.Decoder(TaskDocument).decode


class CaseHistory:
    def __init__(self, server: Server, store: Store, document: CaseDocument) -> None:
        self._server = server
        self._store = store
        self._document = document
        self._case = document.id

    async def entries(self, last: int = 0, *, brief: bool = False) -> list[HistoryEntry]:
        """All entries, or the last so many; `brief`: without what the engine ordered."""
        told = await (self._brief if brief else self._whole)(last + BESIDE if last else 0)
        since = told.since
        jobs = await self._jobs_since(since, told.serials, brief=brief) if since else await self._all_jobs()
        tasks = [_decode_task(found.body) async for found in self._store.scan(TASK_KIND, f"{self._case}/")]
        decisions = await self._server.runtime.exceptions.decisions.of_case(self._case)
        recent = [each for each in decisions if _last_change(each) >= since]
        journal = _with_actors(told.entries, jobs, tasks, _starter_of(self._document))
        attempts = history.attempts(jobs, decisions, now=self._server.clock.now())
        found = merge_entries(
            journal, [*attempts, *history.decision_entries(recent)], [step async for step in self._steps(recent)]
        )
        return found[-last:] if last else found

    async def _whole(self, last: int, *, brief: bool = False) -> RecentFacts:
        """What the engine did, by replaying its journal."""
        told = await self._server.long_journals.read(self._store, self._case, last, brief=brief)
        is_cut = bool(last) and len(told.entries) == last
        return RecentFacts(told.entries, told.serials, told.entries[0].at if is_cut else 0)

    async def _brief(self, last: int) -> RecentFacts:
        found = await recent_facts(self._store, self._document, last)
        return found if found is not None else await self._whole(last, brief=True)

    async def _steps(self, decisions: Iterable[Decision]) -> AsyncIterator[HistoryEntry]:
        for decision in decisions:
            if decision.exlet_case is not None and decision.exlet_case != self._case:
                for step in history.primitives(await history.journal(self._store, decision.exlet_case), decision):
                    yield step

    async def _all_jobs(self) -> list[Job]:
        return _in_order([self._current(found) async for found in self._store.scan(JOB_KIND, f"{self._case}/")])

    async def _jobs_since(self, since: Instant, serials: Collection[int], *, brief: bool) -> list[Job]:
        """The jobs that were not over at an instant, and those with these serials. Of what completed since then the
        facts tell, all but what nobody waited for: `brief` does not look for that among very many."""
        await self._store.refresh()
        found: dict[str, StoredDocument] = {}
        case = FieldCondition("case", self._case)
        open_states = [str(JobState.AVAILABLE), str(JobState.RUNNING)]
        ended = [FieldCondition("finished_at", since, "ge")]
        ended += [FieldCondition("state", str(JobState.FAILED))] if brief else []
        for where in (ended, [FieldCondition("state", open_states, "in")]):
            last: StoredDocument | None = None
            while page := await self._store.search(JOB_KIND, [case, *where], limit=PAGE, after=last):
                found |= {each.id: each for each in page}
                last = page[-1]
        ids = [f"{self._case}/{serial}" for serial in serials]
        for talk in await self._store.get_many(CONVERSATION_KIND, ids):
            ids += _decode_talk(talk.body).submission_ids[1:]
        found |= {each.id: each for each in await self._store.get_many(JOB_KIND, ids)}
        return _in_order([self._current(each) for each in found.values()])

    def _current(self, found: StoredDocument) -> Job:
        return self._server.runtime.meta.jobs.get(JobId(found.id)) or _decode_job(found.body)


def _in_order(jobs: list[Job]) -> list[Job]:
    return sorted(jobs, key=lambda job: (serial_of(job.id), generation_of(job.id)))


def _last_change(decision: Decision) -> Instant:
    return max(decision.at, decision.taken_up_at, decision.ended_at, decision.settled_at)


def _with_actors(
    entries: Iterable[HistoryEntry], jobs: Iterable[Job], tasks: Iterable[TaskDocument], starter: str
) -> Iterator[HistoryEntry]:
    """The engine's entries, with who started the case, the pilot that each job ended on, and the person who ended a
    user task and what was answered."""
    pilots = {job.spec.item: job.history[-1].pilot for job in jobs if job.history}
    people = {task.item: task for task in tasks if task.ended_by}
    for entry in entries:
        ends = entry.what in ("completed", "failed") and entry.item is not None
        if ends and entry.item in pilots:
            yield msgspec.structs.replace(entry, by=pilots[entry.item])
        elif ends and entry.item in people:
            task = people[entry.item]
            said = "; ".join(each for each in (_answer(task), task.comment) if each) or entry.message
            yield msgspec.structs.replace(entry, source="person", what=task.state, by=task.ended_by, message=said)
        elif starter and entry.what == "started" and entry.item is None:
            yield msgspec.structs.replace(entry, by=starter)
        else:
            yield entry


def _starter_of(document: CaseDocument) -> str:
    """Who started the case. A case that another one called, or that mends one, nobody did."""
    return document.owner if document.parent is None and document.mends is None else ""


def _answer(task: TaskDocument) -> str:
    """What was answered, in a few words."""
    if task.state != "completed" or task.outputs in (None, {}, ""):
        return ""
    named = redact(task.outputs) if isinstance(task.outputs, dict) else {"answer": task.outputs}
    text = " ".join(", ".join(f"{name}: {_value_text(value)}" for name, value in named.items()).split())
    return text if len(text) <= ANSWER_CHARS else f"{text[:ANSWER_CHARS]} ..."


def _value_text(value: Value) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
