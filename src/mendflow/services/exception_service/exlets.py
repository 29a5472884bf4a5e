"""The cases of exlets: which flow an exlet is, what its case is called, and how it begins.

An exlet's case has the id of the case that it mends and a number of its own, `CASE.x1`, so that the hierarchy can be
read from the id. It is linked to what it mends, and to the decision behind it."""

import re
from typing import Final

from mendflow.core.model.flow import Flow
from mendflow.core.model.ids import CaseId
from mendflow.core.model.mending import Conclusion, Decision
from mendflow.core.model.problems import NotFound
from mendflow.core.model.values import Value
from mendflow.services.case_book import CASE_KIND, CaseDocument
from mendflow.services.contracts import Clock
from mendflow.services.exception_service.contexts import bounded
from mendflow.services.exception_service.decisions import DecisionBook
from mendflow.services.exception_service.rule_book import RuleBook
from mendflow.services.flow_manager import FlowManager
from mendflow.services.flows import Flows
from mendflow.services.ledger import Ledger
from mendflow.stores.contract import Store

_STRANGE: Final = re.compile(r"[^\w.-]")
_LEVEL: Final = re.compile(r"\.x(\d+)(?=\.|$)")


def depth_of(case: CaseId) -> int:
    """How many exlets stand above this case in its own name."""
    return len(_LEVEL.findall(case))


class Exlets:
    def __init__(
        self,
        *,
        store: Store,
        ledger: Ledger,
        clock: Clock,
        manager: FlowManager,
        flows: Flows,
        rules: RuleBook,
        decisions: DecisionBook,
    ) -> None:
        self._store = store
        self._ledger = ledger
        self._manager = manager
        self._flows = flows
        self._rules = rules
        self._decisions = decisions
        self._numbers: dict[str, int] = {}
        self._since = clock.now()

    async def find(self, said: Conclusion) -> Flow | None:
        """An exlet of the set, or a flow that is deployed by that name."""
        found = await self._rules.exlet(said)
        if found is not None:
            return found
        try:
            return (await self._flows.find(said.exlet))[0]
        except NotFound:
            return None

    async def next_case(self, decision: Decision) -> CaseId:
        """The id of the next exlet's case. How far the numbers go is read from the store once, unless the mended case
        began after this server."""
        stem = stem_of(decision)
        live = self._manager.live.get(decision.case) if not decision.engine else None
        if live is not None and live.document.started_at > self._since:
            self._numbers.setdefault(stem, 0)
        if stem not in self._numbers:
            highest = await self._highest(stem)
            self._numbers.setdefault(stem, highest)
        self._numbers[stem] += 1
        return CaseId(f"{stem}.x{self._numbers[stem]}")

    async def _highest(self, stem: str) -> int:
        await self._ledger.settled()
        own = re.compile(re.escape(stem) + r"\.x(\d+)")
        known = [found.id async for found in self._store.scan(CASE_KIND, f"{stem}.x")]
        known += [each.exlet_case for each in self._decisions.open.values() if each.exlet_case is not None]
        return max((int(match[1]) for id in known if (match := own.fullmatch(id)) is not None), default=0)

    async def begin(self, decision: Decision, exlet: Flow | None, context: dict[str, Value]) -> None:
        """Start the exlet's case. Raises a Mistake if it cannot even start."""
        assert decision.exlet_case is not None
        if exlet is None:
            raise NotFound(f"the exlet {decision.exlet} is nowhere")
        mended = self._manager.live.get(decision.case) if not decision.engine else None
        document = CaseDocument(
            id=decision.exlet_case,
            flow=exlet.name,
            digest=self._flows.digest(exlet),
            inputs=inputs_for(exlet, context),
            owner=mended.document.owner if mended is not None else "",
            mends=decision.case,
            mends_item=decision.item,
            mends_engine=decision.engine,
            decision=decision.id,
        )
        await self._manager.begin(document, exlet, {})

    def forget(self, case: CaseId) -> None:
        """The case is over, and nothing more mends it."""
        self._numbers.pop(case, None)


def stem_of(decision: Decision) -> str:
    """What the exlet's id begins with. Ids of foreign cases may hold anything."""
    return f"{decision.engine}.{_STRANGE.sub('_', decision.case)}" if decision.engine else decision.case


def inputs_for(exlet: Flow, context: dict[str, Value]) -> dict[str, Value]:
    """An exlet wants the context. Any other flow gets of the case's data what it has inputs for."""
    if "context" in exlet.inputs:
        return {"context": bounded(context)}
    data = {**context["case"]["data"], **context["item"]["data"]}
    return {name: data[name] for name in exlet.inputs if name in data}
