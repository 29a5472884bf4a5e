"""Why something is in its present state, for a case, a job, an item or a pilot."""

from collections import Counter
from collections.abc import Sequence

import msgspec

from mendflow.core.engine.plan import walk_activities
from mendflow.core.model.errors import NotFound
from mendflow.core.model.ids import PilotId, without_item
from mendflow.core.model.jobs import Job, JobState
from mendflow.core.model.repair import ExceptionType
from mendflow.core.model.repair_views import DecisionView, Explanation
from mendflow.core.model.views import ITEM_END_STATES, CaseView, ItemView, PilotView, Reason
from mendflow.core.results.reuse_checks import why_run
from mendflow.core.scheduling import explanations
from mendflow.core.scheduling.amounts import clock, size
from mendflow.services.api.case_queries import CaseQueries
from mendflow.services.api.case_reasons import named_items, partial_results, why_case
from mendflow.services.api.domain_reasons import call_with_way, with_way
from mendflow.services.api.job_reasons import why_job_is_so
from mendflow.services.api.repaired_jobs import ShownValues, find_repaired, origin_sentence
from mendflow.services.cases import suspensions
from mendflow.services.cases.forced_items import was_forced
from mendflow.services.messaging.waits import waits_for
from mendflow.services.runtime.server import Server
from mendflow.services.scheduling.pilot_records import PilotRecord


async def why(domain: CaseQueries, server: Server, subject: str, *, shows_env: bool = True) -> Reason:
    """`subject` is a case, a job `CASE/SERIAL`, an item `CASE:ITEM`, or a pilot. `shows_env`: with values of the
    environments of jobs."""
    shown = ShownValues(server.hidden, shows_env)
    if ":" in subject:
        named, _, item = subject.partition(":")
        case = (await domain.case(named)).id  # once: another may be the last one in a moment
        try:
            found = await domain.item(case, item)
        except NotFound:
            return await _with_case_state(domain, case, await why_not_begun(domain, case, item))
        told = await _with_case_state(domain, case, await why_item_found(domain, server, shown, found))
        return await _with_partial_results(domain, found, told)
    if "/" in subject:
        return await why_job(domain, server, shown, subject)
    pilot = server.runtime.meta.pilots.get(PilotId(subject))
    if pilot is not None:
        return why_pilot(pilot, server.runtime.meta.pilot_view(pilot))
    try:
        view = await domain.case(subject)
    except NotFound as error:
        raise NotFound(
            f"{subject!r} is no case, job (CASE/SERIAL), item (CASE:ITEM), pilot or schedule here; `mendflow cases`"
            " lists cases"
        ) from error
    return await why_case(
        domain, server, shown, view, lambda item: why(domain, server, f"{view.id}:{item}", shows_env=shows_env)
    )


async def _with_case_state(domain: CaseQueries, case: str, told: Reason) -> Reason:
    """An item that is not over is suspended if its case is."""
    view = await domain.case(case)
    of_item = [hold for hold in view.holds if hold.item is not None and told.subject == f"{view.id}:{hold.item}"]
    if of_item:
        told = msgspec.structs.replace(told, facts=[suspensions.sentence(view.id, of_item), *told.facts])
    if view.status != "suspended" or told.state in ITEM_END_STATES:
        return told
    fact = f"its case is suspended, so nothing new begins in it: `mendflow why {view.id}` says why"
    return msgspec.structs.replace(told, facts=[fact, *told.facts])


async def _with_partial_results(domain: CaseQueries, item: ItemView, told: Reason) -> Reason:
    """What an item worked without, of the loops whose results it asks for."""
    partial = await partial_results(domain, await domain.case(item.case))
    facts = [f"incomplete: {each.sentence}" for each in partial if each.name == item.name]
    return msgspec.structs.replace(told, facts=[*told.facts, *facts]) if facts else told


async def why_item_found(domain: CaseQueries, server: Server, shown: ShownValues, item: ItemView) -> Reason:
    """An item is more than its job or user task: it may have been ended by force, or before it was started."""
    if item.job:
        told = await why_job(domain, server, shown, item.job)
        removed = item.state == "cancelled" and told.state != "cancelled"
        return why_forced(item, told) if removed or was_forced(item) else told
    if was_forced(item):
        return why_forced(item)
    if item.kind == "user-task":
        try:
            return await task_reason(domain, item)
        except NotFound:
            pass  # nobody was offered it
    present = server.present
    live = present.manager.live.get(item.case) if present is not None else None
    told = item_reason(item, waits_for(live, item.item, server.url) if live is not None else "")
    if present is None:
        return told
    progress = present.domains.calls.progress_of(item.case, item.serial)
    return await call_with_way(present.connected.router, item, told, progress)


async def why_job(domain: CaseQueries, server: Server, shown: ShownValues, id: str) -> Reason:
    """Of one that completed also why it ran, and was not taken from the cache."""
    job = await domain.newest_submission(id)
    told = await with_way(server.runtime.connected.router, job, why_job_is_so(server, job))
    if job.state is JobState.COMPLETED:
        told = msgspec.structs.replace(told, facts=[*await _mended(domain, shown, job), *told.facts])
    if job.state is not JobState.COMPLETED or job.cache_reason:
        return told
    ran = why_run(job.spec, (await domain.case(job.case)).cache)
    return msgspec.structs.replace(told, facts=[ran, *told.facts]) if ran else told


async def _mended(domain: CaseQueries, shown: ShownValues, job: Job) -> list[str]:
    """With what a job was run that had failed before, or the one whose result was taken over."""
    if repaired := await find_repaired(domain, shown, job.id):
        return [f"it was submitted again, with {repaired.changes}"]
    taken_over = await origin_sentence(domain, shown, job)
    return [f"mended: {taken_over}"] if taken_over else []


async def why_not_begun(domain: CaseQueries, case: str, name: str) -> Reason:
    """An activity of the flow that has not begun: what it waits for. Raises NotFound if there is no activity of that
    name."""
    view = await domain.case(case)
    activities = list(walk_activities(await domain.flow_of(view.id)))
    wanted = next((each for each in activities if name in (each.label or each.name, each.name)), None)
    if wanted is None:
        raise NotFound(f"case {view.id} has no item {name!r}, and its flow no activity; `mendflow items` lists them")
    before = {
        each.label or each.name for each in activities for source in each.sources if source.link in wanted.targets
    }
    listed = await domain.items_named(view.id, {name, wanted.name, *before})
    if several := [item for item in listed if item.name in (name, wanted.name)]:
        return why_several(view, name, several)
    items = {item.name: item for item in listed}
    facts = [f"{needed} {_progress_text(items.get(needed))}" for needed in sorted(before)]
    pending = sorted(needed for needed in before if needed not in items or items[needed].state not in ITEM_END_STATES)
    waits = f": it waits for {', '.join(pending)}" if pending else ""
    subject = f"{view.id}:{name}"
    if view.status not in ("running", "suspended"):
        return Reason(subject=subject, state="none", sentence=f"{name} did not begin: the case has {view.status}.")
    return Reason(subject=subject, state="none", sentence=f"{name} has not begun{waits}.", facts=facts)


def why_several(view: CaseView, name: str, items: Sequence[ItemView]) -> Reason:
    """An activity that has begun more than once: one item for each iteration, each of which can be asked for."""
    states = Counter(item.state for item in items)
    state = next((each for each in ("failed", "running", "waiting") if states[each]), items[-1].state)
    first, last = items[0].item, items[-1].item
    told = ", ".join(f"{count} {each}" for each, count in sorted(states.items()))
    which = f"{first} to {last}" if len(items) > 2 else " and ".join(item.shown for item in items)
    failed = [(item, item.fault.message) for item in items if item.state == "failed" and item.fault]
    facts = [f"{item.shown}: {without_item(said, item.item)}" for item, said in failed]
    return Reason(
        subject=f"{view.id}:{name}",
        state=state,
        sentence=f"{name} is {which}: {told}; `mendflow why {view.id}:{first}` says more of one.",
        facts=facts[: explanations.FACTS_MAX],
    )


CAN_TEACH = "is where you can teach a rule"
_AUXILIARY_VERBS = {"completed": "has", "failed": "has", "skipped": "was", "cancelled": "was", "cached": "was"}


def _progress_text(item: ItemView | None) -> str:
    if item is None:
        return "has not begun"
    return f"{_AUXILIARY_VERBS.get(item.state, 'is')} {item.state}"


async def task_reason(domain: CaseQueries, item: ItemView) -> Reason:
    task = await domain.user_task(f"{item.case}/{item.serial}")
    subject = f"{item.case}:{item.item}"
    if task.state == "claimed":
        sentence = f"{item.shown} is claimed by {task.claimed_by}, for the role {task.role}."
    elif task.state == "offered":
        sentence = f"{item.shown} waits for somebody with the role {task.role}: `mendflow worklist claim {task.id}`."
    else:
        by = f" by {task.ended_by}" if task.ended_by else ""
        ended = "has expired" if task.state == "expired" else f"was {task.state}"
        sentence = f"{item.shown} {ended}{by}" + (f": {task.comment}" if task.comment else ".")
    facts = [f"its deadline is {clock(task.deadline)}"] if task.deadline else []
    return Reason(subject=subject, state=item.state, sentence=sentence, facts=facts)


def item_reason(item: ItemView, waits: str = "") -> Reason:
    """`waits` says more precisely than the item's kind what it waits for."""
    words = {
        "wait": "waits for its time",
        "receive": "waits for a message: `mendflow send` delivers one",
        "pick": "waits for the first of several messages or alarms",
        "call": "waits for the case that it called",
        "stage": "stores its files on the server",
        "invoke": "waits for its partner",
        "transform": "waits for what a style sheet makes",
    }
    if item.state in ("waiting", "running", "staging"):
        sentence = f"{item.shown} {waits or words.get(item.kind, 'is under way')}."
    elif item.state == "suspended":
        sentence = f"{item.shown} is suspended; `mendflow resume` resumes it."
    else:
        sentence = f"{item.shown} {_progress_text(item)}" + _fault_after(item)
    return Reason(
        subject=f"{item.case}:{item.item}",
        state=item.state,
        sentence=sentence,
        facts=[item.reason] if item.reason else [],
    )


def _fault_after(item: ItemView) -> str:
    return f": {without_item(item.fault.message, item.item)}" if item.fault else "."


def why_forced(item: ItemView, job: Reason | None = None) -> Reason:
    """An item that was ended by force, with the state of its job."""
    sentence = f"{item.shown} was {item.reason}" + _fault_after(item)
    facts = [job.sentence, *job.facts] if job is not None else []
    return Reason(subject=f"{item.case}:{item.item}", state=item.state, sentence=sentence, facts=facts)


def with_repairs(told: Reason, repairs: Sequence[DecisionView], undone: Sequence[str] = ()) -> Explanation:
    """The reason, with the repairs of the item, and sentences about what was undone. An item that is being mended has
    not failed yet."""
    newest = repairs[0] if repairs else None
    told = msgspec.structs.replace(told, facts=[*undone, *told.facts])
    fields = msgspec.structs.asdict(told)
    if told.state == "failed" and newest is not None and newest.state in ("running", "waiting"):
        by = f"is being mended by {newest.exlet}" if newest.exlet else "waits for a person to mend it"
        case = f", case {newest.exlet_case}" if newest.exlet_case else ""
        fields |= {"state": "waiting", "sentence": f"{newest.shown or newest.case} failed and {by}{case}."}
        fields["facts"] = [told.sentence, *told.facts]
    held = [each for each in repairs if each.state == "waiting" and each.type is ExceptionType.ABORT]
    if told.state in ("running", "stopped", "asked") and held and told.subject == held[0].about:
        fields |= {"state": "held", "sentence": _held_sentence(held[0])}
        named = {each.shown for each in held}
        fields["facts"] = [
            *(f"{each.shown}: {_fault_text(each)}" for each in held[1:]),
            *_ways_on(held[0]),
            *(fact for fact in told.facts if fact.partition(": it failed: ")[0] not in named),
        ]
    if told.state == "failed" and newest is not None and newest.job and told.subject == newest.case:
        offers = "tells what rules did in vain" if newest.tried else CAN_TEACH
        rule = f"`mendflow failures show {newest.group}` {offers}"
        failed_only = f"`mendflow rerun {newest.case} --from-failed` runs what did not succeed"
        again = f"`mendflow rerun {newest.case}` runs it again" if undone else failed_only
        goes_on = f"`mendflow rerun --group {newest.group}` lets all cases that failed alike go on, of other flows too"
        fields["facts"] = [*told.facts, f"{again}; {rule}" + ("" if undone else f"; {goes_on}")]
    waits = next((each for each in repairs[::-1] if each.state == "waiting" and each.trigger), None)
    if told.state == "suspended" and waits is not None and told.subject == waits.about:
        about = f" on {waits.item}" if waits.item else ""
        what = f"{waits.trigger!r} was raised{about} and no rule knows it"
        fields["sentence"] = (
            f"case {waits.about} is suspended: {what}. `mendflow mend {waits.about} --exlet EXLET` mends it."
        )
    chooses = [each for each in repairs if each.state == "waiting" and each.type is ExceptionType.SELECTION]
    if told.state not in ("completed", "failed", "cancelled"):
        fields["facts"] = [*(_choice_sentence(each) for each in chooses), *fields["facts"]]
    of_case = [each for each in repairs if each.about == told.subject]
    fields["items"] = told.items | named_items(of_case, [fields["sentence"], *fields["facts"]])
    return Explanation(**fields, repairs=list(repairs))


def _choice_sentence(waits: DecisionView) -> str:
    return (
        f"{waits.shown} waits for a worklet: {waits.note}; `mendflow mend {waits.about} --exlet FLOW` chooses one,"
        f" `mendflow failures show {waits.group}` {CAN_TEACH}"
    )


def _held_sentence(held: DecisionView) -> str:
    what = held.tried or "no rule took it up"
    return f"case {held.about} is held for a person: {held.shown} failed and {what}: {_fault_text(held)}."


def _ways_on(held: DecisionView) -> list[str]:
    """What a person can do about a case that is held."""
    return [
        f"`mendflow resume {held.about}` tries it again as it is, `mendflow cancel {held.about}` ends the case",
        f"`mendflow failures show {held.group}` {CAN_TEACH}, `mendflow rules apply {held.group}` applies those that"
        " there are",
        f"`mendflow mend {held.about} --exlet EXLET` mends it on the spot",
    ]


def _fault_text(held: DecisionView) -> str:
    return without_item(held.fault.message, held.item) if held.fault is not None else "it failed"


def why_pilot(pilot: PilotRecord, view: PilotView) -> Reason:
    doing = f"holds {len(view.running)} jobs" if view.running else "is idle"
    sentence = f"pilot {pilot.id} on {pilot.host or 'an unknown host'} is {view.state} and {doing}."
    has = pilot.capacity
    slots = "1 slot" if has.slots == 1 else f"{has.slots} slots"
    facts = [
        f"it has {slots}, {has.cpus:g} cpus and {size(has.memory_bytes)} of memory",
        f"its lease ends in {view.lease_ms_left / 1000:.1f} s if it stays silent",
    ]
    if view.cache_files:
        facts.append(f"its cache has {view.cache_files} files, {size(view.cache_bytes)}")
    return Reason(subject=pilot.id, state=view.state, sentence=sentence, facts=facts)
