"""The history of a case: what its engine recorded, what pilots and people did, what the exception service decided.

The journal holds only facts; what followed from them is computed by replaying it through the engine. So the history
cannot differ from what happened."""

import asyncio
from collections.abc import Iterable, Iterator

import msgspec

from mendflow.core.model.ids import CaseId, Instant, ItemId, item_name
from mendflow.core.model.jobs import Attempt, Job, Requeue
from mendflow.core.model.repair import BY_HAND, RETRYING, TOLD, Conclusion, Decision, ExceptionType
from mendflow.core.model.repair_views import HistoryEntry
from mendflow.core.model.rules import DEFAULT_RULES
from mendflow.core.model.views import ItemView
from mendflow.services.cases.live_case import journal_of
from mendflow.services.observe.journal_reader import JournalReader
from mendflow.stores.contract import Store

PAGE_EVENTS = 500
ONLY_TOLD = "a person was told, and nothing else was done"
UNDER_WAY = "under way: its job was submitted again, and has not ended"


async def journal(store: Store, case: CaseId) -> list[HistoryEntry]:
    """What the engine did, from the first event to the last."""
    return (await read_journal(store, case)).entries


async def read_journal(store: Store, case: CaseId) -> JournalReader:
    reader, position = JournalReader(case), 0
    while page := await store.read(journal_of(case), position, PAGE_EVENTS):
        for entry in page:
            reader.take(entry)
        position += len(page)
        await asyncio.sleep(0)  # a long journal must not block other requests
    return reader


def attempts(jobs: Iterable[Job], decisions: Iterable[Decision] = (), *, now: Instant = 0) -> Iterator[HistoryEntry]:
    """What pilots did: each attempt's start and end. The end of an attempt is recorded after it was decided about: what
    was decided follows from it all the same. `now` is the server's time, if it is known."""
    decided_at: dict[str, list[Instant]] = {}
    for decision in decisions:
        decided_at.setdefault(decision.id.partition(":")[0], []).append(decision.at)
    for job in jobs:
        again = job.id.partition("~")[2]
        for number, attempt in enumerate(job.history, 1):
            if attempt.end == "returned" and attempt.requeue is None:
                continue  # the grant came back, and the attempt never began
            text = f"attempt {number}" + (f" of submission {again}" if again else "")
            known = {"case": job.case, "source": "pilot", "item": job.spec.item, "name": item_name(job.spec.item)}
            begun = _begun_at(attempt, now)
            yield msgspec.convert(
                {**known, "at": begun, "what": "began", "lifecycle": "start", "by": attempt.pilot, "message": text},
                HistoryEntry,
            )
            requeue = attempt.requeue or (None if attempt.end else job.requeued)
            if requeue is not None:
                yield _requeue_entry(job, requeue, text, begun)
            elif attempt.end and attempt.end != "completed":
                why = f"{text}: {attempt.fault.message}" if attempt.fault else text
                yield msgspec.convert(
                    {
                        **known,
                        "at": _failed_at(attempt.ended_at, begun, decided_at.get(job.id, ())),
                        "what": attempt.end,
                        "lifecycle": "withdraw" if attempt.end == "cancelled" else "ate_abort",
                        "by": attempt.pilot,
                        "message": why,
                    },
                    HistoryEntry,
                )


def _begun_at(attempt: Attempt, now: Instant) -> Instant:
    """When an attempt began: by its pilot's clock, where that agrees with what the server saw. A clock that is ahead
    still says how long the attempt took."""
    told, seen_until = attempt.measures.started_at, attempt.ended_at or now
    if told <= attempt.granted_at or not seen_until or told < seen_until:
        return max(attempt.granted_at, told)
    took_ms = max(attempt.measures.ended_at - told, 1)
    return max(attempt.granted_at, attempt.ended_at - took_ms) if attempt.ended_at else attempt.granted_at


def _failed_at(ended_at: Instant, begun: Instant, decided: Iterable[Instant]) -> Instant:
    """When an attempt failed: after its start, and before what was decided about it."""
    return min((at for at in decided if begun < at <= ended_at), default=max(ended_at, begun + 1))


def _requeue_entry(job: Job, requeue: Requeue, text: str, begun: Instant) -> HistoryEntry:
    """A person requeued the job."""
    return HistoryEntry(
        at=max(requeue.at, begun + 1),
        case=job.case,
        source="person",
        what="requeued",
        name=item_name(job.spec.item),
        item=job.spec.item,
        lifecycle="reassign",
        by=requeue.by,
        message=f"{text}: {requeue.reason}" if requeue.reason else text,
    )


def steps_of(entries: Iterable[HistoryEntry]) -> list[ItemView]:
    """The primitives of an exlet as items: the journal is the only record of them."""
    found: dict[ItemId, ItemView] = {}
    for entry in entries:
        if entry.item is None:
            continue
        if entry.what == "mending":
            found[entry.item] = ItemView(
                case=entry.case,
                item=entry.item,
                name=entry.name,
                kind="mend",
                serial=len(found) + 1,
                state="running",
                created_at=entry.at,
                reason=entry.message,
            )
        elif entry.item in found:
            state = {"mended": "completed", "failed": "failed"}.get(entry.what, "cancelled")
            found[entry.item] = msgspec.structs.replace(found[entry.item], state=state, ended_at=entry.at)
    return list(found.values())


def primitives(entries: Iterable[HistoryEntry], decision: Decision) -> Iterator[HistoryEntry]:
    """What an exlet did, step by step, as part of the history of the case that it mends."""
    for entry in entries:
        if entry.item is not None:
            yield msgspec.structs.replace(entry, source="service", decision=decision.id, exlet=decision.exlet)


def decision_entries(decisions: Iterable[Decision]) -> Iterator[HistoryEntry]:
    """What the exception service concluded, and the result."""
    for decision in decisions:
        if raised := _trigger_entry(decision):
            yield raised
        if raised and decision.state == "waiting":
            continue
        known = HistoryEntry(
            at=decision.taken_up_at or decision.at,
            case=decision.case,
            source="service",
            what="decided" if decision.exlet else decision.state,
            name=decision.exlet or decision.task or decision.type.value,
            item=decision.item,
            lifecycle="start" if decision.exlet else "",
            by=_rule_of(decision),
            message=_conclusion_text(decision),
            decision=decision.id,
            exlet=decision.exlet,
        )
        yield known
        if decision.ended_at and decision.state in ("done", "failed", "rejected"):
            under_way = decision.result == RETRYING
            came = _RESULT_WORDS.get(decision.result, decision.result) or decision.state
            text = f"{decision.exlet}: {came}" + (f" ({decision.note})" if decision.note else "")
            what, how = "repaired", "complete" if decision.state == "done" else "ate_abort"
            if decision.result == TOLD:
                what = "told"
            elif decision.result == "failed":
                what, how = "tried in vain", "ate_abort"
            if under_way:
                what, how = "repairing", ""
            at = max(decision.ended_at, decision.settled_at)
            yield msgspec.structs.replace(known, at=at, what=what, message=text, lifecycle=how)


_RESULT_WORDS = {RETRYING: UNDER_WAY, TOLD: ONLY_TOLD}


def _trigger_entry(decision: Decision) -> HistoryEntry | None:
    """A trigger, at the time when it was raised; the repair may have come much later."""
    trigger = decision.context.get("trigger")
    if not trigger or "!" in decision.id:  # a decision that replaces another was raised with it
        return None
    by = ((decision.context.get("event") or {}).get("data") or {}).get("by", "")
    unknown = "; no rule knew it: the case was suspended, and the administrator told"
    return HistoryEntry(
        at=decision.at,
        case=decision.case,
        source="person",
        what="raised",
        name=decision.task or str(trigger),
        item=decision.item,
        by=str(by),
        message=f"{trigger!r} was raised" + (unknown if decision.safeguard.startswith("waiting:") else ""),
        decision=decision.id,
    )


def _rule_of(decision: Decision) -> str:
    conclusion = decision.conclusion
    if conclusion is not None and conclusion.rule == BY_HAND:
        return conclusion.ordered_by or "a person"
    return _rule_words(conclusion) if conclusion else ""


def _rule_words(conclusion: Conclusion) -> str:
    """`default rule 8`, `night v2 rule 1`: of rules that somebody changed, with the version."""
    if conclusion.rules == DEFAULT_RULES and not conclusion.version:
        return f"default rule {conclusion.rule}"
    return f"{conclusion.rules} v{conclusion.version} rule {conclusion.rule}"


def _conclusion_text(decision: Decision) -> str:
    word = "failed" if decision.type is ExceptionType.ABORT else decision.type.value
    about = f"{word}: {decision.fault.message}" if decision.fault else word
    if not decision.exlet:
        found = decision.tried or "no rule fits this"
        text = f"{about}; {found}{', and it waits for a person' if decision.state == 'waiting' else ''}"
    else:
        text = f"{about}; runs {decision.exlet}"
    return "; ".join((*(f"rule {each.rule} on trial would run {each.exlet}" for each in decision.trials), text))
