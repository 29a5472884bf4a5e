"""Why a job waits, and why it failed: the reason as a sentence, and the facts behind it.

Reasons are tried in the order in which they must be removed: what holds the job itself, then whether there is any
pilot, then whether any could ever run it, then whether one is free. So the sentence names the one thing to change
next, or all that no pilot has."""

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Final, NamedTuple

import msgspec

from mendflow.core.model.faults import Fault
from mendflow.core.model.ids import Instant, PilotId
from mendflow.core.model.jobs import Attempt, Job, Resources
from mendflow.core.model.sync import Capacity
from mendflow.core.model.views import Reason
from mendflow.core.scheduling.amounts import clock, duration, size
from mendflow.core.scheduling.jobs import effective_needs, outlived_ms
from mendflow.core.scheduling.offer import CPU_GRAIN, FOREVER_MS, why_unsuitable
from mendflow.core.scheduling.retries import stated_retries

SUSPENDED = "it is suspended; `mendflow resume` resumes it"
STARTS_PILOT = "`mendflow pilot --server URL` starts one"
PILOTS_NAMED_MAX: Final = 3
FACTS_MAX = 10
OUTPUT_LINES_MAX = 12


class PilotFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a connected pilot. `ttl_ms` is 0 for one without end; `reserved_for` names the job that the
    pilot is kept free for. A job takes a slot, however little it asks for."""

    id: PilotId
    host: str
    capacity: Capacity
    cpus_free: float
    memory_free_bytes: int
    disk_free_bytes: int
    gpus_free: int = 0
    site: str = ""
    ttl_ms: int = 0
    reserved_for: str = ""
    slots_free: int = 1
    paused: str = ""  # why it takes no new job for now
    projects: frozenset[str] | None = None  # those that it works for; None: all

    @property
    def name(self) -> str:
        return f"{self.id} on {self.host}" if self.host else self.id


class Demand(NamedTuple):
    """One requirement of a job, and how to find it in a pilot: in total, and free now."""

    what: str
    superlative: str
    asked: float
    has: Callable[[PilotFacts], float]
    free: Callable[[PilotFacts], float]
    tell: Callable[[float], str]

    def is_met(self, amount: float) -> bool:
        return self.asked <= amount + CPU_GRAIN


def why_waiting(
    job: Job, pilots: Sequence[PilotFacts], ahead: int | None, now: Instant, coming: Sequence[str] = ()
) -> Reason:
    """Why nobody runs this job now. `ahead` is how many jobs are before it in the queue: None, if it stands for many
    and what is said must be true of each; `coming` says, for each site whose pilots could take it, what happens to
    these; or, if there is none, why the others' could not."""
    if job.suspended:
        return _why(job, "suspended", SUSPENDED)
    if job.available_at > now:
        return _why_later(job, now)
    if not pilots:
        how = coming[0] if coming else STARTS_PILOT
        return _why(job, "waiting", f"no pilot is connected; {how}", _outlived_facts(job))
    needs = effective_needs(job)
    if needs.site and not any(pilot.site == needs.site for pilot in pilots):
        return _why_site(job, pilots, coming)
    there = [pilot for pilot in pilots if needs.site in ("", pilot.site)]
    if not (there := [pilot for pilot in there if pilot.projects is None or needs.project in pilot.projects]):
        return _why_project(job, needs, [pilot for pilot in pilots if needs.site in ("", pilot.site)])
    welcome = [pilot for pilot in there if not _unsuitable(needs, pilot)]
    if not welcome:
        return msgspec.structs.replace(_why_unsuitable(job, needs, there), stuck=True)
    able = [pilot for pilot in welcome if not _unmet(needs, pilot)]
    if not able:
        return msgspec.structs.replace(_why_never(job, welcome), stuck=True)
    taking = [pilot for pilot in able if not pilot.paused]
    if not taking:
        paused = [f"{pilot.name}: {pilot.paused}" for pilot in able[:FACTS_MAX]]
        return _why(job, "waiting", f"no pilot that can take it takes new jobs now; {paused[0]}", paused[1:])
    return _why_not_yet(job, taking, ahead)


def _known_by(fault: Fault) -> str:
    """What a failure is known by where retries name their causes."""
    code = f", exit code {fault.exit_code}" if fault.exit_code is not None else ""
    return f"{fault.name}{code}, of the kind {fault.category}"


def why_failed(job: Job) -> Reason:
    """Why the job failed: its fault, then each attempt's."""
    assert job.outcome is not None and job.outcome.fault is not None, f"job {job.id} has not failed"
    fault = job.outcome.fault
    tries = f" in attempt {job.tries}" if job.tries > 1 else ""
    facts = [f"the fault is {fault.name}, of the kind {fault.category}"]
    if fault.exit_code is not None and f"exit code {fault.exit_code}" not in fault.message:
        facts.append(f"it ended with exit code {fault.exit_code}")
    if fault.signal is not None and f"signal {fault.signal}" not in fault.message:
        facts.append(f"it was ended by signal {fault.signal}")
    if (stated := stated_retries(job.spec, fault)) is not None:
        failures, allowed = job.failures + sum(job.spec.spent), stated.rule.times + 1
        facts.append(f"{min(failures, allowed)} of {allowed} tries failed, as many as its `retries` allow")
    elif job.spec.retry and not fault.infrastructure:
        causes = ", ".join(cause for rule in job.spec.retry for cause in rule.on)
        facts.append(f"its `retries` are for {causes}, and this is {_known_by(fault)}, so it was not tried again")
    if job.losses:
        lost = "1 attempt was" if job.losses == 1 else f"{job.losses} attempts were"
        facts.append(f"{lost} lost to the infrastructure, which does not count as a retry")
    facts += _attempts(job)
    if kept := [attempt for attempt in job.history if attempt.folder]:
        where = f"{kept[-1].folder} on {kept[-1].host}" if kept[-1].host else kept[-1].folder
        facts.append(f"its folder is kept for a time: {where}; `mendflow shell {job.id}` opens a shell there")
    if job.outcome.has_rescued_files:
        facts.append(f"what it made is safe on the server: {', '.join(sorted(job.outcome.files))}")
    told = _why(job, "failed", f"it failed{tries}: {fault.message}", facts)
    return msgspec.structs.replace(told, output=last_lines(job.outcome.log_tail or fault.log_tail))


def last_lines(text: str) -> list[str]:
    """The end of what a job printed."""
    return [line for line in text.splitlines() if line.strip()][-OUTPUT_LINES_MAX:]


def _why_later(job: Job, now: Instant) -> Reason:
    last = job.history[-1] if job.history else None
    wait = duration(job.available_at - now)
    if last is None:
        return _why(job, "waiting", f"it waits for its time, {clock(job.available_at)}, {wait} from now")
    text = f": {last.fault.message}" if last.fault is not None else ""
    ended = "failed" if last.end == "failed" else f"was {last.end}"
    if job.failures and last.end == "failed":
        stated = stated_retries(job.spec, last.fault) if last.fault is not None else None
        nth = f"retry {job.failures} of {stated.rule.times if stated else job.spec.retries}"
    else:
        nth = "the next attempt, which does not count as a retry"
    sentence = f"it waits until {clock(job.available_at)}, {wait} from now, for {nth}; its last attempt {ended}{text}"
    return _why(job, "waiting", sentence, _attempts(job))


def _why_site(job: Job, pilots: Sequence[PilotFacts], coming: Sequence[str]) -> Reason:
    site = job.spec.resources.site
    if coming:
        return _why(
            job, "waiting", f"it is bound to site {site}, and no pilot is there; {coming[0]}", _outlived_facts(job)
        )
    known = sorted({pilot.site for pilot in pilots if pilot.site})
    others = f"pilots are at {', '.join(known)}" if known else "no connected pilot names a site"
    told = _why(job, "waiting", f"no pilot can take it: it is bound to site {site}, and {others}")
    return msgspec.structs.replace(told, stuck=True)


def _why_project(job: Job, needs: Resources, pilots: Sequence[PilotFacts]) -> Reason:
    sentence = f"no pilot can take it: it belongs to project {needs.project}, and no pilot works for that"
    facts = [f"{pilot.name} works for {', '.join(sorted(pilot.projects or ()))}" for pilot in pilots[:FACTS_MAX]]
    told = _why(job, "waiting", sentence, [*facts, "a pilot works for the projects that its token names"])
    return msgspec.structs.replace(told, stuck=True)


def _unsuitable(needs: Resources, pilot: PilotFacts) -> str:
    has = pilot.capacity
    return why_unsuitable(needs, pilot.host, has.system, has.machine, has.runtime)


def _why_unsuitable(job: Job, needs: Resources, pilots: Sequence[PilotFacts]) -> Reason:
    if all(pilot.host in needs.avoid_hosts for pilot in pilots):
        hosts = ", ".join(sorted({pilot.host for pilot in pilots}))
        sentence = f"no pilot can take it: it avoids {hosts}, and all pilots that it could go to are there"
        return _why(job, "waiting", sentence, [f"a pilot on another host takes it; {STARTS_PILOT}"])
    if needs.runtimes and not any(pilot.capacity.runtime in needs.runtimes for pilot in pilots):
        return _why_no_runtime(job, needs, pilots)
    why = "; ".join(sorted({_unsuitable(needs, pilot) for pilot in pilots}))
    facts = [f"{pilot.name} runs on {_platform(pilot)}" for pilot in pilots[:FACTS_MAX]]
    return _why(
        job,
        "waiting",
        f"no pilot can take it: {why}, and no pilot is there; {STARTS_PILOT}",
        facts,
    )


def _why_no_runtime(job: Job, needs: Resources, pilots: Sequence[PilotFacts]) -> Reason:
    image = job.spec.container.image if job.spec.container is not None else ""
    facts = [f"{pilot.name} has {pilot.capacity.runtime or 'none of them'}" for pilot in pilots[:FACTS_MAX]]
    sentence = f"no pilot can take it: its container {image} needs {' or '.join(needs.runtimes)}, and no pilot has that"
    return _why(job, "waiting", sentence, [*facts, "install it on a pilot's machine and start the pilot again"])


def _platform(pilot: PilotFacts) -> str:
    return " ".join(filter(None, (pilot.capacity.system, pilot.capacity.machine))) or "a machine that it has not named"


def _why_never(job: Job, pilots: Sequence[PilotFacts]) -> Reason:
    """No pilot could take it even if idle: name all that is missing, and the nearest pilot."""
    needs = effective_needs(job)
    demands = _demands(needs)
    lacks = [(demand, best) for demand in demands if not demand.is_met(demand.has(best := max(pilots, key=demand.has)))]
    if lacks:
        told = "; it also ".join(_asks(demand, best) for demand, best in lacks)
        return _why(
            job, "waiting", f"no pilot can take it: it {told}", _outlived_facts(job) + _shortages(needs, pilots)
        )
    nearest = min(pilots, key=lambda pilot: (len(_unmet(needs, pilot)), pilot.id))
    missing = "; ".join(_short(demand, nearest) for demand in _unmet(needs, nearest))
    sentence = f"no single pilot has all that it asks for; the nearest, {nearest.name}, lacks: {missing}"
    return _why(job, "waiting", sentence, _shortages(needs, pilots))


def _outlived_facts(job: Job) -> list[str]:
    """Why it asks for a time that its flow does not name."""
    ran_ms = outlived_ms(job)
    if not ran_ms or job.spec.resources.wall_ms:
        return []
    return [
        f"it had run for {duration(ran_ms)} when its pilot's time was over, and waits for one that stays longer than"
        f" {duration(effective_needs(job).wall_ms)}; if it takes less, say so with `time`"
    ]


def _why_not_yet(job: Job, able: Sequence[PilotFacts], ahead: int | None) -> Reason:
    """Some pilot could take it: either none has room now, or other jobs come first."""
    demands = _demands(effective_needs(job))
    free = [
        pilot for pilot in able if pilot.slots_free > 0 and all(demand.is_met(demand.free(pilot)) for demand in demands)
    ]
    before = f"{ahead} {'job is' if ahead == 1 else 'jobs are'} before it in the queue"
    kept = [pilot for pilot in able if pilot.reserved_for == job.id]
    facts = [f"{pilot.name} is kept free for it" for pilot in kept]
    if free:
        others = [f"{pilot.name} is kept free for {pilot.reserved_for}" for pilot in free if pilot.reserved_for]
        sentence = f"it will be taken soon: {before}" if ahead else "it is next in the queue and will be taken at once"
        if ahead is None:
            sentence = "a pilot has room, and it will be taken soon"
        return _why(job, "waiting", sentence, facts + others)
    busy = "the one pilot that can take it is" if len(able) == 1 else f"all {len(able)} pilots that can take it are"
    nearest = min(able, key=lambda pilot: (sum(not demand.is_met(demand.free(pilot)) for demand in demands), pilot.id))
    facts += [_busy(demand, nearest) for demand in demands if not demand.is_met(demand.free(nearest))]
    if nearest.slots_free <= 0:
        slots = "its one slot is" if nearest.capacity.slots == 1 else f"all its {nearest.capacity.slots} slots are"
        facts.append(f"{nearest.name}: {slots} taken")
    return _why(job, "waiting", f"{busy} busy" + ("" if ahead is None else f"; {before}"), facts)


def _demands(needs: Resources) -> list[Demand]:
    """The requirements of the job; those not set are left out."""
    every = (
        Demand("cpus", "largest", needs.cpus, lambda p: p.capacity.cpus, lambda p: p.cpus_free, lambda n: f"{n:g}"),
        Demand("memory", "largest", needs.memory_bytes, lambda p: p.capacity.memory_bytes,
               lambda p: p.memory_free_bytes, size),
        Demand("disk", "largest", needs.disk_bytes, lambda p: p.capacity.disk_bytes, lambda p: p.disk_free_bytes, size),
        Demand("gpus", "largest", needs.gpus, lambda p: p.capacity.gpus, lambda p: p.gpus_free, lambda n: f"{n:g}"),
        Demand("wall time", "longest-lived", needs.wall_ms, _lifetime_ms, _lifetime_ms, duration),
    )  # fmt: skip
    return [demand for demand in every if demand.asked > 0]


def _lifetime_ms(pilot: PilotFacts) -> float:
    return pilot.ttl_ms or FOREVER_MS


def _unmet(needs: Resources, pilot: PilotFacts) -> list[Demand]:
    return [demand for demand in _demands(needs) if not demand.is_met(demand.has(pilot))]


def _asks(demand: Demand, best: PilotFacts) -> str:
    has = "has" if demand.what != "wall time" else "has left"
    return (
        f"asks for {_amount(demand, demand.asked)}; "
        f"the {demand.superlative} pilot, {best.name}, {has} {demand.tell(demand.has(best))}"
    )


def _amount(demand: Demand, number: float) -> str:
    """With its unit: `2 cpus`, `1 gpu`, `64 GB of memory`."""
    if demand.what in ("cpus", "gpus"):
        return f"{demand.tell(number)} {demand.what[:-1] if number == 1 else demand.what}"
    return f"{demand.tell(number)} of {demand.what}"


def _busy(demand: Demand, pilot: PilotFacts) -> str:
    free, whole = demand.tell(max(0, demand.free(pilot))), demand.tell(demand.has(pilot))
    return f"{pilot.name} has {free} of {whole} {demand.what} free; it asks for {demand.tell(demand.asked)}"


def _short(demand: Demand, pilot: PilotFacts) -> str:
    return f"{demand.what} ({demand.tell(demand.has(pilot))}, asked {demand.tell(demand.asked)})"


def _shortages(needs: Resources, pilots: Sequence[PilotFacts]) -> list[str]:
    """What each pilot lacks, the nearest first."""
    nearest = sorted(pilots, key=lambda pilot: (len(_unmet(needs, pilot)), pilot.id))
    return [
        f"{p.name} lacks {', '.join(_short(demand, p) for demand in _unmet(needs, p))}" for p in nearest[:FACTS_MAX]
    ]


def _attempts(job: Job) -> list[str]:
    """A fact for each attempt; those in a row that ended for the same reason are one."""
    ended = [attempt for attempt in job.history if attempt.end and attempt.end != "returned"]
    rows = [list(row) for _, row in groupby(ended, key=lambda each: (each.end, each.fault and each.fault.message))]
    return [_attempt(row[0]) if len(row) == 1 else _equal_attempts(row) for row in rows[-FACTS_MAX:]]


def _equal_attempts(row: list[Attempt]) -> str:
    first, last = row[0], row[-1]
    text = f": {last.fault.message}" if last.fault is not None else ""
    pilots = sorted({str(attempt.pilot) for attempt in row})
    more = f" and {len(pilots) - PILOTS_NAMED_MAX} more" if len(pilots) > PILOTS_NAMED_MAX else ""
    where = ", ".join(pilots[:PILOTS_NAMED_MAX]) + more
    return f"attempts {first.shown} to {last.shown} on {where} ended as {last.end}, each for the same reason{text}"


def _attempt(attempt: Attempt) -> str:
    text = f": {attempt.fault.message}" if attempt.fault is not None else ""
    took = duration(attempt.measures.ran_ms or attempt.ended_at - attempt.granted_at)
    return f"attempt {attempt.shown} on {attempt.pilot} ended as {attempt.end} after {took}{text}"


def _why(job: Job, state: str, sentence: str, facts: Sequence[str] = ()) -> Reason:
    return Reason(subject=job.id, state=state, sentence=f"{job.spec.shown}: {sentence}", facts=list(facts))
