"""The cases of exlets: which flow an exlet is, the id of its case, and when it starts.

The id of an exlet's case is the id of the case that it mends and a number, `CASE.x1`, so that the hierarchy can be read
from the id. It is linked to what it mends, and to its decision. The exlets of each item are counted: rules that would
repair an item for ever are stopped at a maximum. Before that they are slowed down: an exlet that the same rule has
started for the item too often within a short time is delayed."""

import re
from collections import Counter, deque
from collections.abc import Iterable
from typing import Final

import msgspec

from mendflow.core.model.errors import NotFound
from mendflow.core.model.flow import Flow
from mendflow.core.model.ids import CaseId, Instant, ItemId
from mendflow.core.model.repair import BY_HAND, Conclusion, Decision, ExceptionType
from mendflow.core.model.rules import rule_text
from mendflow.core.model.values import Value
from mendflow.lazy import lazy_pattern
from mendflow.services.base.cluster import CASE_KIND
from mendflow.services.base.ledger import Ledger
from mendflow.services.cases.flow_manager import FlowManager
from mendflow.services.cases.flows import Flows
from mendflow.services.cases.live_case import CaseDocument
from mendflow.services.recovery.contexts import bounded_context
from mendflow.services.recovery.decisions import DecisionStore
from mendflow.services.recovery.rules.store import RuleStore
from mendflow.stores.contract import FieldCondition, Store

STARTS_MAX: Final = 3
STARTS_WINDOW_MS: Final = 1_000
"""How many exlets a rule may start for one item within this time; the next one starts when that is over."""

TRIED_MAX: Final = 50
"""How many of the decisions about an item are read to say what was tried."""

_Rule = tuple[ItemId, str, str, str, int]
"""A rule and the item that it is about: the set, the type, the tree and the number."""

_TIMES: Final = {1: "once", 2: "twice"}
_UNSAFE_CHARS: Final = lazy_pattern(r"[^\w.-]")
_EXLET_LEVEL: Final = lazy_pattern(r"\.x(\d+)(?=\.|$)")


def exlet_depth(case: CaseId) -> int:
    """How many exlets stand above this case in its own name."""
    return len(_EXLET_LEVEL.findall(case))


class _MendedItem(msgspec.Struct):
    """The fields of an exlet's case that are needed to count it."""

    mends_item: ItemId | None = None


class _ExletCount:
    """The exlets of one case: the highest number, and how many there were for each item."""

    def __init__(self) -> None:
        self.highest = 0
        self.of_item: Counter[ItemId | None] = Counter()
        self.warned: set[ItemId | None] = (
            set()
        )  # the items for which the administrator was told that there were too many
        self.turns: dict[_Rule, deque[Instant]] = {}  # when the last exlets of each rule started, or will start

    def add(self, number: int, item: ItemId | None) -> None:
        self.highest = max(self.highest, number)
        self.of_item[item] += 1


_decode = msgspec.json.Decoder(_MendedItem).decode


class ExletLauncher:
    def __init__(
        self,
        *,
        store: Store,
        ledger: Ledger,
        manager: FlowManager,
        flows: Flows,
        rules: RuleStore,
        decisions: DecisionStore,
    ) -> None:
        self._store = store
        self._ledger = ledger
        self._manager = manager
        self._flows = flows
        self._rules = rules
        self._decisions = decisions
        self._counts: dict[str, _ExletCount] = {}

    async def find(self, conclusion: Conclusion, project: str) -> Flow | None:
        """An exlet of the set, or a flow of the project that is deployed by that name."""
        found = await self._rules.exlet(conclusion)
        if found is not None:
            return found
        try:
            return (await self._flows.find(conclusion.exlet, project))[0]
        except NotFound:
            return None

    async def next_case(self, decision: Decision) -> CaseId:
        """The id of the next exlet's case."""
        stem = stem_of(decision)
        count = await self._count(stem, decision)
        count.add(count.highest + 1, decision.item)
        return CaseId(f"{stem}.x{count.highest}")

    async def repair_count(self, decision: Decision) -> int:
        """How many exlets there were already for the decision's item."""
        return (await self._count(stem_of(decision), decision)).of_item[decision.item]

    async def tried(self, decision: Decision) -> str:
        """What was done about the decision's item before, as a sentence without its end; empty if nothing was."""
        live = self._manager.live.get(decision.case) if not decision.engine else None
        if live is None or decision.item is None or not await self.repair_count(decision):
            return ""
        about = [FieldCondition("case", decision.case), FieldCondition("item", decision.item)]
        return tried_text(await self._decisions.search(about, limit=TRIED_MAX))

    async def start_time(self, decision: Decision, conclusion: Conclusion) -> Instant:
        """When the exlet may start: when it was decided on, unless the same rule has just mended the item too often.
        What a person orders starts at once."""
        if decision.item is None or conclusion.ordered_by:
            return decision.at
        rule = (decision.item, conclusion.rules, conclusion.type.value, conclusion.task, conclusion.rule)
        turns = (await self._count(stem_of(decision), decision)).turns.setdefault(rule, deque(maxlen=STARTS_MAX))
        at = max(decision.at, turns[0] + STARTS_WINDOW_MS) if len(turns) == STARTS_MAX else decision.at
        turns.append(at)
        return at

    async def is_first_warning(self, decision: Decision) -> bool:
        """Whether this is the first warning about too many repairs of the item."""
        warned = (await self._count(stem_of(decision), decision)).warned
        first = decision.item not in warned
        warned.add(decision.item)
        return first

    async def _count(self, stem: str, decision: Decision) -> _ExletCount:
        """The counts are read from the store once, unless the mended case was started by these services and is live:
        the counts of a case that is over, whose forgotten jobs may still fail, are not kept in memory."""
        live = self._manager.live.get(decision.case) if not decision.engine else None
        if live is not None and live.is_started_here and live.document.live:
            self._counts.setdefault(stem, _ExletCount())
        if stem not in self._counts:
            counted = await self._counted(stem)
            self._counts.setdefault(stem, counted)
        return self._counts[stem]

    async def _counted(self, stem: str) -> _ExletCount:
        await self._ledger.settled()
        own = re.compile(re.escape(stem) + r"\.x(\d+)")
        known: dict[str, ItemId | None] = {}
        async for found in self._store.scan(CASE_KIND, f"{stem}.x"):
            known[found.id] = _decode(found.body).mends_item
        known |= {each.exlet_case: each.item for each in self._decisions.open.values() if each.exlet_case is not None}
        count = _ExletCount()
        for id, item in known.items():
            if (match := own.fullmatch(id)) is not None:
                count.add(int(match[1]), item)
        return count

    async def begin(self, decision: Decision, exlet: Flow | None, context: dict[str, Value]) -> None:
        """Start the exlet's case. Raises a RequestError if it cannot even start."""
        assert decision.exlet_case is not None
        if exlet is None:
            raise NotFound(f"the exlet {decision.exlet} is nowhere")
        exlet = await self._flows.sealed(exlet)
        mended = self._manager.live.get(decision.case) if not decision.engine else None
        document = CaseDocument(
            id=decision.exlet_case,
            flow=exlet.name,
            digest=self._flows.digest(exlet),
            inputs=inputs_for(exlet, context),
            owner=mended.document.owner if mended is not None else "",
            project=decision.project,
            mends=decision.case,
            mends_item=decision.item,
            mends_engine=decision.engine,
            decision=decision.id,
        )
        await self._manager.begin(document, exlet, [])

    def forget(self, case: CaseId) -> None:
        """The case is over, and nothing more mends it."""
        self._counts.pop(case, None)


def tried_text(decisions: Iterable[Decision]) -> str:
    """Which rules, or people, did what and how often: `rule 1 of night did try-again twice, without success`."""
    done: Counter[tuple[str, str]] = Counter()
    for each in sorted(decisions, key=lambda each: each.at):
        said = each.conclusion
        if said is not None and each.exlet and each.type is ExceptionType.ABORT:
            by = said.ordered_by or ("a person" if said.rule == BY_HAND else rule_text(said.rules, said.rule))
            done[by, each.exlet] += 1
    if not done:
        return ""
    *parts, last = [f"{by} did {exlet} {_TIMES.get(times, f'{times} times')}" for (by, exlet), times in done.items()]
    return f"{', '.join(parts)}{' and ' if parts else ''}{last}, without success"


def stem_of(decision: Decision) -> str:
    """The start of the exlet's id. Ids of cases of other engines may hold any character."""
    return f"{decision.engine}.{_UNSAFE_CHARS.sub('_', decision.case)}" if decision.engine else decision.case


def inputs_for(exlet: Flow, context: dict[str, Value]) -> dict[str, Value]:
    """The inputs of an exlet are the context. Any other flow gets those of the case's data that it has inputs for."""
    if "context" in exlet.inputs:
        return {"context": bounded_context(context)}
    data = {**context["case"]["data"], **context["item"]["data"]}
    return {name: data[name] for name in exlet.inputs if name in data}
