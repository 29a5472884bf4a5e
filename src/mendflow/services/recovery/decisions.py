"""The decisions: a document for each exception that something followed from, and for every abort.

Decisions that are under way stay in memory. Each has a marker of its own in the store, written before it, and taken
away when all is over: so a server that starts finds exactly those that it has to go on with, whatever it was doing when
it was stopped, and need not read the others. Engines name their cases as they like: what is known of a case is known
under its engine's name too."""

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

import msgspec

from mendflow.core.model.ids import CaseId, Instant
from mendflow.core.model.mending import Decision, DecisionState, XEvent
from mendflow.core.model.problems import NotFound
from mendflow.core.recovery.signature import normalised, signature
from mendflow.services.base.cluster import only, root_of
from mendflow.services.base.contracts import Clock
from mendflow.services.base.homes import HomeBook
from mendflow.services.base.hub import Hub
from mendflow.services.base.ledger import Ledger
from mendflow.stores.contract import Store, Where

DECISION_KIND: Final = "decision"
OPEN_KIND: Final = "open-decision"
TRIED_AGAIN: Final = "tried-again"
"""The result of a decision whose job was submitted again and has not ended yet."""
RECORDED_MAX: Final = 1_000
UNDER_WAY: Final[tuple[DecisionState, ...]] = ("running", "waiting")

_decode = msgspec.json.Decoder(Decision).decode


def signature_of(event: XEvent) -> str:
    """The same for exceptions of the same cause: a fault, what somebody said has happened, or where it came up."""
    if event.fault is not None:
        return signature(event.fault)
    trigger = event.facts.get("trigger")
    about = normalised(trigger) if isinstance(trigger, str) and trigger else event.task
    return f"{event.type.value}: {about}" if about else event.type.value


class Mended(NamedTuple):
    """A case of an engine, the first of which is this very server's, without a name."""

    engine: str
    case: CaseId


def mended_by(decision: Decision) -> Mended:
    return Mended(decision.engine, decision.case)


class DecisionEnded(NamedTuple):
    """Nothing more follows from this decision."""

    decision: Decision


class OpenMarker(msgspec.Struct, frozen=True):
    id: str


class DecisionBook:
    def __init__(self, store: Store, ledger: Ledger, clock: Clock, homes: HomeBook, hub: Hub) -> None:
        self._homes = homes
        self._store = store
        self._ledger = ledger
        self._clock = clock
        self.open: dict[str, Decision] = {}
        self._hub = hub
        self.half_ended: list[Decision] = []  # found at the start: over, and perhaps not all of that has followed
        self._recorded: dict[str, None] = {}
        self.of_exlet: dict[CaseId, str] = {}
        self._of_case: dict[Mended, dict[str, None]] = {}  # those under way
        self.tries: dict[Mended, dict[int, list[str]]] = {}  # items on another try, and the decisions that gave it

    async def load(self, roots: Collection[CaseId]) -> None:
        """Read what is under way in these trees of cases."""
        async for found in self._store.scan(OPEN_KIND, only(roots)):
            if root_of(found.id) not in roots:
                continue
            self._ledger.known(OPEN_KIND, found.id, found.version)
            kept = await self._store.get(DECISION_KIND, found.id)
            if kept is None:
                self._ledger.drop(OPEN_KIND, found.id)
                continue
            decision = _decode(kept.body)
            self._ledger.known(DECISION_KIND, found.id, kept.version)
            self._keep(decision)
            if not self._unfinished(decision):
                self.half_ended.append(decision)

    def half_ended_of(self, roots: Collection[CaseId]) -> list[Decision]:
        """Those of these trees that were found to be over, each given once."""
        found = [decision for decision in self.half_ended if root_of(decision.id) in roots]
        self.half_ended = [decision for decision in self.half_ended if root_of(decision.id) not in roots]
        return found

    def of_trees(self, roots: Collection[CaseId]) -> list[Decision]:
        """Those under way in these trees of cases."""
        return [decision for decision in self.open.values() if root_of(decision.id) in roots]

    def _keep(self, decision: Decision) -> None:
        self._homes.hold(decision.id, f"decision {decision.id}")
        self.open[decision.id] = decision
        if decision.exlet_case is not None:
            self.of_exlet[decision.exlet_case] = decision.id
        self._of_case.setdefault(mended_by(decision), {})[decision.id] = None
        if decision.result == TRIED_AGAIN:
            self._tries(decision).append(decision.id)

    def _tries(self, decision: Decision) -> list[str]:
        return self.tries.setdefault(mended_by(decision), {}).setdefault(decision.serial, [])

    @staticmethod
    def _unfinished(decision: Decision) -> bool:
        return decision.state in UNDER_WAY or decision.result == TRIED_AGAIN or decision.correction is not None

    def under_way(self, case: Mended) -> list[Decision]:
        """The decisions about a case that something still follows from."""
        return [self.open[id] for id in self._of_case.get(case, ()) if id in self.open]

    async def find(self, id: str) -> Decision | None:
        """The decision, if there is one: from memory while it is under way, else as it was written."""
        if (decision := self.open.get(id)) is not None:
            return decision
        await self._ledger.settled()
        kept = await self._store.get(DECISION_KIND, id)
        return _decode(kept.body) if kept is not None else None

    async def get(self, id: str) -> Decision:
        decision = await self.find(id)
        if decision is None:
            raise NotFound(f"there is no decision {id!r}; `mendflow why CASE` tells those of a case")
        return decision

    async def reopen(self, id: str) -> Decision:
        """The decision, to be changed; also one that was over."""
        if (decision := self.open.get(id)) is not None:
            return decision
        await self._ledger.settled()
        kept = await self._store.get(DECISION_KIND, id)
        if kept is None:
            raise NotFound(f"there is no decision {id!r}; `mendflow why CASE` tells those of a case")
        self._ledger.known(DECISION_KIND, id, kept.version)
        return _decode(kept.body)

    def draft(self, decision: Decision) -> None:
        """One that is still being made: it can be found here, and nothing of it is written."""
        self.open[decision.id] = decision

    def withdraw(self, decision: Decision) -> None:
        """Nothing comes of a draft."""
        self.open.pop(decision.id, None)

    def begin(self, decision: Decision) -> None:
        """A decision that something follows from. The marker is written first."""
        self._keep(decision)
        self._ledger.touch(OPEN_KIND, decision.id, OpenMarker(decision.id))
        self._ledger.touch(DECISION_KIND, decision.id, decision)

    def note(self, decision: Decision) -> None:
        """Something about a decision under way is new."""
        self._ledger.touch(DECISION_KIND, decision.id, decision)
        if decision.exlet_case is not None:
            self.of_exlet[decision.exlet_case] = decision.id

    def tried_again(self, decision: Decision) -> None:
        """Its job was given another try; the decision stays under way until that has ended. The tries that others gave
        it before have come to nothing, or this one would not be needed."""
        if decision.result != TRIED_AGAIN:
            self.tries_ended(mended_by(decision), decision.serial, "failed")
            decision.result = TRIED_AGAIN
            self._tries(decision).append(decision.id)
        self.note(decision)

    def record(self, decision: Decision) -> None:
        """A decision that nothing follows from: written once, and forgotten here. One that is told twice at the same
        time is still one."""
        if decision.id in self._recorded:
            return
        self._recorded[decision.id] = None
        if len(self._recorded) > RECORDED_MAX:
            del self._recorded[next(iter(self._recorded))]
        self._hub.publish(DecisionEnded(decision))
        self._ledger.touch(DECISION_KIND, decision.id, decision, last=True)

    def end(self, decision: Decision, state: DecisionState, result: str) -> None:
        """What it came to. One whose job is on another try waits for that to know its result."""
        decision.state, decision.ended_at = state, self._clock.now()
        if decision.result == TRIED_AGAIN:
            self.note(decision)
            return
        decision.result = decision.result or result
        self.close(decision)

    def close(self, decision: Decision) -> None:
        self._hub.publish(DecisionEnded(decision))
        self._ledger.touch(DECISION_KIND, decision.id, decision, last=True)
        self._ledger.drop(OPEN_KIND, decision.id)
        self._homes.let_go(decision.id, f"decision {decision.id}")
        self.open.pop(decision.id, None)
        if decision.exlet_case is not None:
            self.of_exlet.pop(decision.exlet_case, None)
        case = mended_by(decision)
        if (known := self._of_case.get(case)) is not None:
            known.pop(decision.id, None)
            if not known:
                del self._of_case[case]

    def trying(self, case: Mended, serial: int) -> bool:
        """Whether the item is on another try that an exlet gave it."""
        return serial in self.tries.get(case, ())

    def all_tries_ended(self, case: Mended, result: str) -> None:
        for serial in list(self.tries.get(case, ())):
            self.tries_ended(case, serial, result)

    def tries_ended(self, case: Mended, serial: int, result: str) -> None:
        """The job that was given another try has ended so."""
        tries = self.tries.get(case, {})
        ended = tries.pop(serial, [])
        if not tries:
            self.tries.pop(case, None)
        for id in ended:
            decision = self.open.get(id)
            if decision is None:
                continue
            decision.result = result
            if decision.state in UNDER_WAY:
                self.note(decision)
            else:
                self.close(decision)

    async def search(
        self, where: Sequence[Where], *, since: Instant = 0, limit: int = 100, offset: int = 0
    ) -> list[Decision]:
        """The newest first. What is under way is given as it stands in memory."""
        await self._ledger.settled()
        wanted = [*where, *([Where("at", since, "ge")] if since else [])]
        found = await self._store.search(
            DECISION_KIND, wanted, order_by="at", descending=True, limit=limit, offset=offset
        )
        return [self.open.get(document.id) or _decode(document.body) for document in found]

    async def of_case(self, case: CaseId, engine: str = "") -> list[Decision]:
        """All decisions about a case, in their order."""
        found = await self.search([Where("case", case), Where("engine", engine)], limit=10_000)
        return sorted(found, key=lambda decision: (decision.at, decision.id))
