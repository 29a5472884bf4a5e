"""Why a case is in its present state."""

from collections.abc import Awaitable, Callable, Iterable, Sequence

import msgspec

from mendflow.core.engine.partial_results import PartialResult, partial_in_case, removal_reason, tolerated_items
from mendflow.core.engine.state import Structure
from mendflow.core.model.ids import ItemId, without_item
from mendflow.core.model.repair_views import DecisionView
from mendflow.core.model.values import Value, file_of
from mendflow.core.model.views import CaseView, ItemView, Reason
from mendflow.core.scheduling import explanations
from mendflow.core.scheduling.amounts import duration, size
from mendflow.services.api.case_queries import CaseQueries
from mendflow.services.api.repaired_jobs import ShownValues, mended_facts
from mendflow.services.cases import suspensions
from mendflow.services.runtime.server import Server

REMOVED_SHOWN = 5
LOST_READ = 1_000
FAILED_SHOWN = 5
VALUE_CHARS_SHOWN = 200
FILES_NAMED = 5
LOOPS = frozenset({"while", "until", "for-each"})


async def why_case(
    domain: CaseQueries,
    server: Server,
    shown: ShownValues,
    case: CaseView,
    why_item: Callable[[str], Awaitable[Reason]],
) -> Reason:
    """`why_item` says why an item of the case is in its state."""
    if case.status == "failed":
        return await _why_case_failed(domain, case)
    if case.status == "suspended":
        sentence = f"case {case.id} is suspended; `mendflow resume {case.id}` resumes it."
        return Reason(subject=case.id, state=case.status, sentence=sentence, facts=_hold_sentences(case))
    if case.status != "running":
        said = f": {case.fault.message}" if case.fault else ""
        took = f" after {duration(case.ended_at - case.started_at)}"
        failed = f"; {_failed(case)}, and the flow went on" if case.status == "completed" and _failed(case) else ""
        lost, removed = await _lost_items(domain, case), await _removed_items(domain, case)
        facts = [
            *_work_done(case),
            *await _incomplete(domain, case, lost),
            *await mended_facts(domain, shown, case),
            *_outputs(case),
            *_removal_facts(case, removed),
        ]
        return Reason(
            subject=case.id,
            state=case.status,
            sentence=f"case {case.id} {_ENDS[case.status]}{took}{said}{failed}.",
            facts=facts,
            items=named_items([*lost, *removed], facts),
        )
    running = sum(count.running for count in case.counts)
    waiting = sum(count.waiting for count in case.counts)
    live = await domain.items(case.id, state="waiting", limit=3)
    facts = []
    for item in live if not case.stopped else [item for item in live if item.kind != "job"]:
        told = await why_item(item.item)
        facts.append(told.sentence)
    lost, removed = await _lost_items(domain, case), await _removed_items(domain, case)
    facts += [
        *await _incomplete(domain, case, lost),
        *await mended_facts(domain, shown, case),
        *_disk_problems(server),
        *_own_work(server, case),
        *_hold_sentences(case),
        *_removal_facts(case, removed),
    ]
    state, sentence = "running", f"case {case.id} is running{_at_work(running, waiting)}."
    if case.tasks and not running:
        more = f" and {case.tasks_open - 1} more" if case.tasks_open > 1 else ""
        asked = f"{case.tasks[0].title}{more}"
        state, sentence = "asked", f"case {case.id} waits for a person: {asked}{'' if asked[-1] in '.?!' else '.'}"
    if case.stopped:
        state = "stopped"
        still = f", {running} still run" if running else ""
        sentence = f"case {case.id} is stopped ({waiting} waiting{still}); `mendflow resume {case.id}` continues it."
    items = named_items([*live, *lost, *removed], facts)
    return Reason(subject=case.id, state=state, sentence=sentence, facts=facts, items=items)


def named_items(items: Iterable[ItemView | DecisionView], texts: Sequence[str]) -> dict[str, ItemId]:
    """Those of the items that the texts name, by what they are called there."""
    text = "\n".join(texts)
    return {each.shown: each.item for each in items if each.item is not None and each.shown in text}


def _failed(case: CaseView) -> str:
    """How many of its items failed; nothing is said where none did."""
    words = ("done", "cached", "running", "waiting", "failed", "cancelled", "skipped")
    of = sum(getattr(count, word) for count in case.counts for word in words) + case.to_come
    failed = sum(count.failed for count in case.counts)
    return f"{failed:,} of {of:,} {'item' if of == 1 else 'items'} failed" if failed else ""


def _at_work(running: int, waiting: int) -> str:
    """What runs and what waits; nothing is said of what there is none of."""
    run = "1 item runs" if running == 1 else f"{running:,} items run"
    what = "" if running else "item " if waiting == 1 else "items "
    wait = f"{waiting:,} {what}{'waits' if waiting == 1 else 'wait'}"
    parts = [*([run] if running else []), *([wait] if waiting else [])]
    return f": {', '.join(parts)}" if parts else ""


async def _why_case_failed(domain: CaseQueries, case: CaseView) -> Reason:
    """The fault that the case ended by, the item that it came from, and the end of what that item printed."""
    said = case.fault.message if case.fault else "a fault that no handler caught"
    found = await domain.items(case.id, state="failed", limit=LOST_READ)
    tolerated = tolerated_items(await domain.flow_of(case.id), case, found)
    failed = [item for item in found if item.fault and item.item not in tolerated]
    first = next((item for item in failed if item.fault and item.fault.message == said), None)
    others = [(item, item.fault.message) for item in failed if item.fault and item is not first]
    removed = await _removed_items(domain, case)
    facts = [f"{item.shown}: {without_item(message, item.item)}" for item, message in others[:FAILED_SHOWN]]
    if (more := len(others) - FAILED_SHOWN) > 0:
        least = "at least " if len(found) == LOST_READ else ""
        facts.append(f"and {least}{more:,} more: `mendflow items {case.id} --state failed`")
    facts += [*_work_done(case), *_removal_facts(case, removed)]
    printed = explanations.last_lines(first.log_tail or (first.fault.log_tail if first.fault else "")) if first else []
    what = f"{first.shown}: {without_item(said, first.item)}" if first else said
    sentence = f"case {case.id} failed after {duration(case.ended_at - case.started_at)}: {what}"
    items = named_items([*failed, *removed], [sentence, *facts])
    return Reason(subject=case.id, state=case.status, sentence=sentence, facts=facts, output=printed, items=items)


_ENDS = {"completed": "has completed", "cancelled": "was cancelled"}
_WORK_WORDS = {
    "done": "completed",
    "cached": "cached",
    "failed": "failed",
    "cancelled": "cancelled",
    "skipped": "skipped",
}


def _work_done(case: CaseView) -> list[str]:
    """What a case did, by kinds of items: `jobs: 3 completed (1 of them repaired), 2 cached`."""
    told = []
    for kind in dict.fromkeys(count.kind for count in case.counts):
        counts = [count for count in case.counts if count.kind == kind]
        totals = {word: sum(getattr(count, word) for count in counts) for word in _WORK_WORDS}
        mended = sum(count.mended for count in counts)
        parts = [
            f"{number:,} {_WORK_WORDS[word]}" + (f" ({mended:,} of them repaired)" if word == "done" and mended else "")
            for word, number in totals.items()
            if number
        ]
        told += [f"{kind.replace('-', ' ')}s: {', '.join(parts)}"] if parts else []
    return told


def _outputs(case: CaseView) -> list[str]:
    """The outputs of a case; of a file its name and size."""
    return [f"output {name}: {_value_text(value)}" for name, value in case.outputs.items()]


def _value_text(value: Value) -> str:
    ref = file_of(value)
    if ref is not None:
        return f"{ref.name or 'a file'}, {size(ref.bytes)}"
    if isinstance(value, list) and value and all(refs := [file_of(each) for each in value]):
        names = [each.name for each in refs if each is not None]
        more = f" and {len(names) - FILES_NAMED} more" if len(names) > FILES_NAMED else ""
        return f"{len(names)} files: {', '.join(names[:FILES_NAMED])}{more}"
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= VALUE_CHARS_SHOWN else text[:VALUE_CHARS_SHOWN] + "..."


def _disk_problems(server: Server) -> list[str]:
    return server.present.monitor.disk_problems() if server.present is not None else []


def _own_work(server: Server, case: CaseView) -> list[str]:
    """What a case computes by itself, without waiting for anything."""
    present = server.present
    live = present.manager.live.get(case.id) if present is not None else None
    if live is None or not live.case.continuation:
        return []
    nodes, loops = live.case.plan.nodes, [each for each in live.case.instances.values() if isinstance(each, Structure)]
    turning = [f"{nodes[each.node].shown}, iteration {each.next:,}" for each in loops if nodes[each.node].kind in LOOPS]
    return [f"it works by itself, a piece at a time{': in ' if turning else ''}{'; '.join(turning[:3])}."]


def _hold_sentences(case: CaseView) -> list[str]:
    """Who suspends the case, or items of it."""
    return [suspensions.sentence(case.id, [hold]) for hold in case.holds]


async def _removed_items(domain: CaseQueries, case: CaseView) -> list[ItemView]:
    """Items that somebody removed; others were cancelled because of them."""
    if not any(count.cancelled for count in case.counts):
        return []
    return [item for item in await domain.items(case.id, state="cancelled", limit=100) if removal_reason(item)]


def _removal_facts(case: CaseView, removed: Sequence[ItemView]) -> list[str]:
    """What was removed, with the reason that was given."""
    told = [f"{item.shown} was cancelled: {removal_reason(item)}" for item in removed[:REMOVED_SHOWN]]
    more = len(removed) - REMOVED_SHOWN
    return [*told, f"and {more} more: `mendflow items {case.id} --state cancelled`"] if more > 0 else told


async def _incomplete(domain: CaseQueries, case: CaseView, lost: Sequence[ItemView]) -> list[str]:
    """Told also while the case goes on: somebody who is asked about what it made has to know what that lacks."""
    return [f"incomplete: {each.sentence}" for each in await _lacking(domain, case, lost)]


async def partial_results(domain: CaseQueries, case: CaseView) -> list[PartialResult]:
    """What the loops of a case lack."""
    return await _lacking(domain, case, await _lost_items(domain, case))


async def _lacking(domain: CaseQueries, case: CaseView, lost: Sequence[ItemView]) -> list[PartialResult]:
    return partial_in_case(await domain.flow_of(case.id), case, lost) if lost else []


async def _lost_items(domain: CaseQueries, case: CaseView) -> list[ItemView]:
    if not any(count.failed or count.cancelled for count in case.counts):
        return []
    return [
        item for state in ("failed", "cancelled") for item in await domain.items(case.id, state=state, limit=LOST_READ)
    ]
