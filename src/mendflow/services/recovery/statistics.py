"""Statistics of the past: of a flow, of its tasks, of a case, of causes and of hosts.

Counts of a flow are read from the store when they are first needed, and updated in memory from then on. They may lag a
little behind, like the search index; nothing depends on their being exact. The statistics of different engines and
projects are separate, even if their flows and cases have the same names. Only hosts are everybody's: how many jobs have
failed on one lately is counted over all projects, for that tells of the host."""

from collections import Counter, deque
from typing import Final, NamedTuple

from mendflow.core.model.ids import Instant
from mendflow.core.model.principals import Sight
from mendflow.core.model.repair import Decision, ExceptionEvent, ExceptionType
from mendflow.core.model.values import Value
from mendflow.services.base.cluster import CASE_KIND
from mendflow.services.base.contracts import Clock
from mendflow.services.base.ledger import Ledger
from mendflow.services.base.visibility import in_sight
from mendflow.services.cases.live_case import CaseDocument
from mendflow.services.recovery.decisions import DECISION_KIND, EngineCaseId, engine_case_of
from mendflow.stores.contract import FieldCondition, Store

RECENT_MS: Final = 3_600_000
RECENT_FAILURES_MAX: Final = 5_000
CASES_MAX: Final = 20_000


class _FlowId(NamedTuple):
    """Whose flow it is: others may have one of the same name."""

    engine: str
    project: str
    flow: str


class _Failure(NamedTuple):
    at: Instant
    project: str
    host: str
    job: str
    cause: str


class _FlowStatistics:
    def __init__(self) -> None:
        self.cases: Counter[str] = Counter()  # by status
        self.failures: Counter[str] = Counter()  # aborts, by task
        self.exlets: Counter[str] = Counter()
        self.results: Counter[str] = Counter()
        self.causes: Counter[str] = Counter()  # by signature


class ExceptionHistory:
    def __init__(self, store: Store, ledger: Ledger, clock: Clock) -> None:
        self._store = store
        self._ledger = ledger
        self._clock = clock
        self._flows: dict[_FlowId, _FlowStatistics] = {}
        self._cases: dict[EngineCaseId, Counter[str]] = {}
        self._recent: deque[_Failure] = deque(maxlen=RECENT_FAILURES_MAX)

    async def load(self, event: ExceptionEvent, project: str, *, fresh: bool) -> None:
        """Read what is not known yet of the flow of a case of this project, and of the case. A `fresh` case, which was
        started by these services, has nothing in the store that they do not know."""
        said_by = FieldCondition("engine", event.engine)
        flow = _FlowId(event.engine, project, event.flow)
        if flow not in self._flows:
            await self._ledger.settled()
            named = [FieldCondition("flow", event.flow), *in_sight(Sight(frozenset({project})))]
            past, of_flow = _FlowStatistics(), [*named, said_by]
            aborts = [*of_flow, FieldCondition("type", ExceptionType.ABORT.value)]
            if not event.engine:
                past.cases.update(await self._store.count(CASE_KIND, named, by="status"))
            past.failures.update(await self._store.count(DECISION_KIND, aborts, by="task"))
            past.causes.update(await self._store.count(DECISION_KIND, aborts, by="signature"))
            past.exlets.update(await self._store.count(DECISION_KIND, of_flow, by="exlet"))
            past.results.update(await self._store.count(DECISION_KIND, of_flow, by="result"))
            self._flows.setdefault(flow, past)
        case = EngineCaseId(event.engine, event.case)
        if case not in self._cases:
            known = fresh and not event.engine
            of_case = [FieldCondition("case", event.case), said_by]
            counted = {} if known else await self._store.count(DECISION_KIND, of_case, by="task")
            if len(self._cases) >= CASES_MAX:
                self._cases.clear()
            self._cases.setdefault(case, Counter(counted))

    def count_decision(self, decision: Decision, host: str) -> None:
        """A decision was made; it counts from now on."""
        if (past := self._flows.get(_flow_of(decision))) is not None:
            if decision.type is ExceptionType.ABORT:
                past.failures[decision.task] += 1
                past.causes[decision.signature] += 1
            if decision.exlet:
                past.exlets[decision.exlet] += 1
        if (counted := self._cases.get(engine_case_of(decision))) is not None:
            counted[decision.task] += 1
        if decision.type is ExceptionType.ABORT:
            job = f"{decision.engine}:{decision.case}/{decision.serial}"
            self._recent.append(_Failure(decision.at, decision.project, host, job, decision.signature))

    def count_result(self, decision: Decision) -> None:
        if decision.result and (past := self._flows.get(_flow_of(decision))) is not None:
            past.results[decision.result] += 1

    def count_case(self, document: CaseDocument) -> None:
        """A case of this server is over."""
        self._cases.pop(EngineCaseId("", document.id), None)
        if (past := self._flows.get(_FlowId("", document.project, document.flow))) is not None:
            past.cases[document.status] += 1

    def facts(self, event: ExceptionEvent, project: str, signature: str, host: str) -> dict[str, Value]:
        """The root `history` of a context of a case of this project. Rates are from 0 to 1."""
        past = self._flows.get(_FlowId(event.engine, project, event.flow)) or _FlowStatistics()
        counted = self._cases.get(EngineCaseId(event.engine, event.case)) or Counter()
        over = {status: past.cases[status] for status in ("completed", "failed", "cancelled")}
        ended = sum(over.values())
        since = self._clock.now() - RECENT_MS
        lately = [each for each in self._recent if each.at >= since]
        on_host = [each.job for each in lately if host and each.host == host]
        same = [each for each in lately if each.cause == signature and each.project == project]
        alike, seen_on = [each.job for each in same], {each.host for each in same if each.host}
        return {
            "case": {"exceptions": counted.total(), "of_task": counted[event.task]},
            "flow": {"cases": ended, **over, "failure_rate": over["failed"] / ended if ended else 0.0},
            "task": {"failures": past.failures[event.task], "of_flow": past.failures.total()},
            "exlets": dict(past.exlets.most_common(20)),
            "results": dict(past.results),
            "cause": {
                "count": past.causes[signature],
                "lately": len(alike),
                "jobs_lately": len(set(alike)),
                "hosts_lately": len(seen_on),
            },
            "host": {"failures_lately": len(on_host), "jobs_lately": len(set(on_host))},
        }


def _flow_of(decision: Decision) -> _FlowId:
    return _FlowId(decision.engine, decision.project, decision.flow)
