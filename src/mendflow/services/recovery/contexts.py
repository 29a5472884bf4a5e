"""The context of an exception: what conditions and exlets can ask for.

    case      id, flow, version, status, age_ms, data (inputs and variables), parent, mends, depth, engine, undoable
              (how much of what it completed can be undone), and jobs, what finished items left:
              case.jobs.NAME.outputs, .files, .exit_code
    item      id, name, kind, status, data, outputs, attempts (those of its job since it last began, and one for
              each restart before), age_ms, caught (the flow has a handler for the fault)
    items     the status of every item of the case, by its name
    job       id, command, element (of the loops that it is in), cpus, memory_bytes, disk_bytes, gpus, wall_ms,
              memory_auto, wall_auto (they are learned), memory_max_bytes, wall_max_ms (up to these bounds),
              container (its image), site_asked, hosts_asked, system_asked, machine_asked, domain_asked (a name, or
              any), expected_ms, priority, owner, exit_code, signal, stage, log_tail, peak_bytes, memory_now_bytes,
              cpu_ms, ran_ms, waiting_ms, site, pilot, host, failures, losses, attempts, retries, retries_spent (it has
              failed as often as its author allows), level, generation, final, files_rescued, sources_left, hosts (all
              that have failed it), avoid_hosts, domain
    fault     name (also `type`), category, family, recoverable, reason, infrastructure, message, file, stage,
              exit_code, signal, data; of a failed job also retry_success (how likely the same again succeeds, from 0 to
              1), and of this flow's jobs that failed by the same cause retry_tries and retry_helped
    outcome   ok, outputs, exit_code
    values    what the running job reported of itself
    measures  of the running job, so far
    history   case, flow, task, exlets, results, cause, host: see past.py
    site      name, pilots, slots, slots_free, largest (cpus, memory_bytes, disk_bytes, gpus of one pilot)
    capacity  pilots, hosts, container_hosts (those that run containers), slots, slots_free, cpus, memory_bytes, gpus,
              waiting, running, sites, largest, domains (the other ones that jobs can go to), levels (how many there
              are to wait in)
    now       milliseconds since 1970
    trigger   what somebody said has happened
    timed_out the item whose time is over
    pattern   how the job's conversation runs
    event     id, type, data (what somebody said of a trigger)
    sources   the values of registered sources that the rules for the exception read, by name; `sources_away` says why a
              source gave none

All roots are always there, empty where they mean nothing, so that a condition need not ask first. What sounds like a
secret is hidden in all of them. The whole is bounded: it is kept with the decision."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final, NamedTuple, Protocol

import msgspec

from mendflow.core.learning.group_statistics import RetryEstimate
from mendflow.core.model.faults import Fault
from mendflow.core.model.ids import Instant, ItemId, JobId
from mendflow.core.model.repair import ExceptionEvent, ExceptionType
from mendflow.core.model.values import Value
from mendflow.core.recovery.classification import classify
from mendflow.core.recovery.redaction import redact
from mendflow.core.rules.source_names import AWAY_ROOT
from mendflow.services.base.contracts import Clock
from mendflow.services.base.engine_interfaces import CaseFacts, ItemFacts
from mendflow.services.base.hub import Hub
from mendflow.services.base.loop_yielder import LoopYielder
from mendflow.services.recovery.decisions import signature_of
from mendflow.services.recovery.statistics import ExceptionHistory

CONTEXT_BYTES_MAX: Final = 32 * 1024
TEXT_CHARS_MAX: Final = 2_000
LIST_LENGTH_MAX: Final = 200

_NO_TRIES: Final[dict[str, Value]] = {"failures": 0, "losses": 0, "attempts": 0, "level": 0, "generation": 1}
"""How often the job was tried."""

_EMPTY_JOB: Final[dict[str, Value]] = {
    **_NO_TRIES,
    "id": "",
    "command": "",
    "element": "",
    "cpus": 0.0,
    "memory_bytes": 0,
    "memory_auto": False,
    "memory_max_bytes": 0,
    "disk_bytes": 0,
    "gpus": 0,
    "wall_ms": 0,
    "wall_auto": False,
    "wall_max_ms": 0,
    "container": "",
    "site_asked": "",
    "hosts_asked": [],
    "system_asked": "",
    "machine_asked": "",
    "domain_asked": "",
    "expected_ms": 0,
    "priority": 0,
    "owner": "",
    "exit_code": None,
    "signal": None,
    "stage": "",
    "log_tail": "",
    "peak_bytes": 0,
    "memory_now_bytes": 0,
    "cpu_ms": 0,
    "ran_ms": 0,
    "waiting_ms": 0,
    "site": "",
    "pilot": "",
    "host": "",
    "retries": 0,
    "retries_spent": False,
    "final": True,
    "files_rescued": False,
    "sources_left": 0,
    "sources": [],
    "hosts": [],
    "avoid_hosts": [],
    "domain": "",
}
_EMPTY_SHAPE: Final[dict[str, Value]] = {"cpus": 0.0, "memory_bytes": 0, "disk_bytes": 0, "gpus": 0}
_NO_CAPACITY: Final[dict[str, Value]] = {
    "pilots": 0,
    "hosts": 0,
    "container_hosts": 0,
    "sites": [],
    "domains": [],
    "largest": _EMPTY_SHAPE,
    "levels": 0,
}
_NO_SITE: Final[dict[str, Value]] = {"name": "", "pilots": 0, "slots": 0, "slots_free": 0, "largest": _EMPTY_SHAPE}


_RETRY_FACTS: Final = ("retry_success", "retry_tries", "retry_helped")

ITEMS_AT_ONCE: Final = 1_000
"""A context of no more is made at once, so that what follows from it comes in the same order each time."""


class ReadSources(NamedTuple):
    """What was read of registered sources, by name, and why the others gave nothing."""

    values: dict[str, Value]
    away: dict[str, str]


class ContextSources(Protocol):
    """The registered sources: it asks those that the rules for an exception read."""

    async def values(self, event: ExceptionEvent, context: Mapping[str, Value], project: str) -> ReadSources: ...


class CapacitySource(Protocol):
    """What there is to run jobs on."""

    def capacity(self) -> dict[str, Value]: ...
    def site(self, name: str) -> dict[str, Value]:
        """One site; all pilots together if the name is empty."""
        ...


class RetryEstimates(Protocol):
    """How likely the same again succeeds, from the history of a cause."""

    async def retry_estimate(self, flow: str, cause: str) -> RetryEstimate: ...


AttemptLookup = Callable[[JobId], Awaitable[int]]
"""How many attempts the job of that id had."""
StartLookup = Callable[[ExceptionEvent, str], Awaitable[Instant]]
"""When the item of an exception began, by its kind; 0 if unknown."""


class ContextBuilder:
    def __init__(
        self,
        clock: Clock,
        past: ExceptionHistory,
        places: CapacitySource | None = None,
        attempts: AttemptLookup | None = None,
        began: StartLookup | None = None,
        hub: Hub | None = None,
        sources: ContextSources | None = None,
    ) -> None:
        self._clock = clock
        self._past = past
        self._places = places
        self._attempts = attempts
        self._began = began
        self._hub = hub
        self._sources = sources
        self._yielder = LoopYielder()

    async def build(
        self, event: ExceptionEvent, facts: CaseFacts | None, depth: int, *, project: str
    ) -> dict[str, Value]:
        """The context of an exception. It has all items of the case, so that many of a large case take long."""
        if facts is not None and len(facts.statuses) > ITEMS_AT_ONCE:
            await self._yielder.pause()
        now, given = self._clock.now(), event.facts
        item = _item(event, facts, now)
        job = {**_EMPTY_JOB, **await self._job_attempts(event, facts), **_map(given.get("job"))}
        if (known := find_item_facts(facts, event)) is not None:
            job["level"] = max(job["level"], known.level)
        item["attempts"] = item["attempts"] or _attempt_count(event, facts, job)
        item["age_ms"] = item["age_ms"] or await self._age_ms(event, str(item["kind"]), now)
        signature = signature_of(event)
        await self._past.load(event, project, fresh=facts is not None and facts.is_started_here)
        context: dict[str, Value] = {
            "case": _case(event, facts, now, depth),
            "item": item,
            "items": facts.statuses if facts else {},
            "job": job,
            "fault": {**_fault(event.fault), **await self._retry_estimate(event, signature)},
            "outcome": {"ok": event.fault is None, "outputs": None, "exit_code": None, **_map(given.get("outcome"))},
            "values": _map(given.get("values")),
            "measures": _map(given.get("measures")),
            "history": self._past.facts(event, project, signature, str(job["host"])),
            "site": self._places.site(str(job["site"])) if self._places else _NO_SITE,
            "capacity": {**_NO_CAPACITY, **(self._places.capacity() if self._places else {})},
            "now": now,
            "trigger": given.get("trigger", ""),
            "timed_out": given.get("timed_out", ""),
            "pattern": given.get("pattern", ""),
            "event": {"id": event.id, "type": event.type.value, "data": given.get("data")},
        }
        plain: dict[str, Value] = msgspec.to_builtins(context)
        found = {**redact(plain), "items": plain["items"]}  # by the names of items, whose states are not secrets
        read = await self._sources.values(event, found, project) if self._sources is not None else ReadSources({}, {})
        return {**found, "sources": redact(read.values), **({AWAY_ROOT: read.away} if read.away else {})}

    async def _retry_estimate(self, event: ExceptionEvent, cause: str) -> dict[str, Value]:
        estimates = self._hub.provider(RetryEstimates) if self._hub is not None else None
        if estimates is None or event.type is not ExceptionType.ABORT or event.fault is None:
            return {}
        found = await estimates.retry_estimate(event.flow, cause)
        return dict(zip(_RETRY_FACTS, (found.success, found.tries, found.helped), strict=True))

    async def _age_ms(self, event: ExceptionEvent, kind: str, now: Instant) -> int:
        if self._began is None or event.item is None or event.type is ExceptionType.ITEM_PRE:
            return 0
        began = await self._began(event, kind)
        return max(0, now - began) if began else 0

    async def _job_attempts(self, event: ExceptionEvent, facts: CaseFacts | None) -> dict[str, Value]:
        """The attempts of a job, where the event does not say how many there were: so it is with a job whose files
        could not be staged, which is restarted where others are submitted again."""
        known = find_item_facts(facts, event)
        has_attempts = "attempts" in _map(event.facts.get("job")) or event.type is ExceptionType.ITEM_PRE
        if (
            has_attempts
            or event.engine
            or known is None
            or known.kind != "job"
            or not event.serial
            or self._attempts is None
        ):
            return {}
        id = JobId(f"{event.case}/{event.serial}")
        return {"id": id, "attempts": await self._attempts(id), "generation": 1 + known.restarts}


def is_accident(path: str) -> bool:
    """Whether a path of the context is of what happened to be so when it failed, such as how often something had failed
    before: no cause."""
    root, _, name = path.partition(".")
    return root == "history" or (root == "job" and name in _NO_TRIES) or (root == "fault" and name in _RETRY_FACTS)


def _map(value: Value) -> dict[str, Value]:
    return value if isinstance(value, dict) else {}


def _case(event: ExceptionEvent, facts: CaseFacts | None, now: int, depth: int) -> dict[str, Value]:
    known = facts or CaseFacts(case=event.case, flow=event.flow, version="", status="", started_at=0)
    return {
        "id": event.case,
        "flow": event.flow,
        "version": known.version,
        "status": known.status,
        "age_ms": now - known.started_at if known.started_at else 0,
        "data": known.data,
        "jobs": known.jobs,
        "parent": known.parent,
        "mends": known.mends,
        "depth": depth,
        "engine": event.engine,
        "undoable": known.undoable,
    }


def _item(event: ExceptionEvent, facts: CaseFacts | None, now: int) -> dict[str, Value]:
    nobody = ItemFacts(item=event.item or ItemId(""), task=event.task, kind="", status="")
    known = find_item_facts(facts, event) or nobody
    outputs = _map(event.facts.get("outcome")).get("outputs")
    return {
        "id": known.item,
        "name": event.task or known.task,
        "kind": known.kind,
        "status": known.status,
        "data": {**known.data, **_map(outputs)},
        "outputs": outputs,
        "attempts": known.attempts,
        "age_ms": now - known.started_at if known.started_at else 0,
        "serial": event.serial,
        "caught": _is_caught(event.fault, facts.catches if facts is not None else []),
    }


def _attempt_count(event: ExceptionEvent, facts: CaseFacts | None, job: dict[str, Value]) -> Value:
    """By our own count: the attempts since it last began, and one for each restart before."""
    known = find_item_facts(facts, event)
    if known is None or known.kind == "job":
        tries = job["attempts"]
    else:
        tries = 0 if event.type is ExceptionType.ITEM_PRE else 1
    return tries + (known.restarts if known is not None else 0)


def _is_caught(fault: Fault | None, catches: list[str]) -> bool:
    """Whether the flow has a handler for this fault."""
    return fault is not None and (fault.name in catches or "*" in catches)


def find_item_facts(facts: CaseFacts | None, event: ExceptionEvent) -> ItemFacts | None:
    if facts is None or event.item is None:
        return None
    return next((each for each in facts.items if each.item == event.item), None)


def _fault(fault: Fault | None) -> dict[str, Value]:
    if fault is None:
        return {
            "name": "",
            "type": "",
            "category": "",
            "message": "",
            "recoverable": False,
            "infrastructure": False,
            "family": "",
        }
    classification = classify(fault)
    return {
        "name": fault.name,
        "type": fault.name,
        "category": fault.category.value,
        "recoverable": classification.recoverable,
        "family": classification.family,
        "reason": classification.reason,
        "infrastructure": fault.infrastructure,
        "message": fault.message[:TEXT_CHARS_MAX],
        "file": fault.file,
        "stage": classification.stage,
        "exit_code": fault.exit_code,
        "signal": fault.signal,
        "data": fault.data,
    }


def bounded_context(context: Mapping[str, Value]) -> dict[str, Value]:
    """The context as it is stored: long texts keep their ends, long lists their beginnings, and if it is still too
    large, its largest roots are left out by name."""
    kept = {root: _shorten(value) for root, value in context.items()}
    sizes = {root: len(msgspec.json.encode(value)) for root, value in kept.items()}
    left_out: list[str] = []
    for root in sorted(sizes, key=lambda each: -sizes[each]):
        if sum(sizes.values()) <= CONTEXT_BYTES_MAX:
            break
        left_out.append(root)
        value = kept[root]
        kept[root] = {key: part for key, part in value.items() if _is_small(part)} if isinstance(value, dict) else None
        sizes[root] = len(msgspec.json.encode(kept[root]))
    return {**kept, "left_out": sorted(left_out)} if left_out else kept


def _is_small(value: Value) -> bool:
    return not isinstance(value, (dict, list)) or len(msgspec.json.encode(value)) <= 256


def _shorten(value: Value) -> Value:
    if isinstance(value, str):
        return value if len(value) <= TEXT_CHARS_MAX else f"…{value[-TEXT_CHARS_MAX:]}"
    if isinstance(value, list):
        return [_shorten(each) for each in value[:LIST_LENGTH_MAX]]
    if isinstance(value, dict):
        return {key: _shorten(each) for key, each in list(value.items())[:LIST_LENGTH_MAX]}
    return value
