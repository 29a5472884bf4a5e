"""Decisions: a document for each exception that had a consequence, and for every abort.

Open decisions stay in memory. Each has a marker of its own in the store, written before it, and deleted when it is
finished: so a server that starts finds exactly the decisions that it has to continue, and need not read the others.
Engines choose the names of their cases: so everything is stored under the engine's name too."""

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace

from mendflow.core.model.errors import NotFound
from mendflow.core.model.ids import CaseId, Instant
from mendflow.core.model.repair import (
    BY_HAND,
    RETRYING,
    Conclusion,
    Decision,
    DecisionState,
    ExceptionEvent,
    ExceptionType,
)
from mendflow.core.recovery.own_words import telling_words
from mendflow.core.recovery.signature import normalize_message, signature
from mendflow.services.base.cluster import only, root_of
from mendflow.services.base.contracts import Clock
from mendflow.services.base.homes import HomeRegistry
from mendflow.services.base.hub import Hub
from mendflow.services.base.ledger import Ledger
from mendflow.services.base.readable_documents import read_or_leave_out
from mendflow.stores.contract import FieldCondition, Store

DECISION_KIND: Final = "decision"
OPEN_DECISION_KIND: Final = "open-decision"
RECORDED_MAX: Final = 1_000
OPEN_STATES: Final[tuple[DecisionState, ...]] = ("running", "waiting")

_decode = msgspec.json.Decoder(Decision).decode


def signature_of(event: ExceptionEvent) -> str:
    """The same for exceptions of the same cause: a fault, a trigger, or the place where it came up. What a person says
    who rejects a task is no part of the cause."""
    if event.fault is not None and event.fault.rejected_by and event.task:
        return f"{event.fault.category}/{event.fault.name}: {event.task} was rejected"
    if event.fault is not None:
        return signature(event.fault, telling_words(event.own_words))
    trigger = event.facts.get("trigger")
    about = normalize_message(trigger) if isinstance(trigger, str) and trigger else event.task
    if reason := why_unavailable(event).partition("; `")[0]:  # what a person could type is no part of the cause
        about = normalize_message(reason)
    return f"{event.type.value}: {about}" if about else event.type.value


def why_unavailable(event: ExceptionEvent) -> str:
    """Of a job that nobody takes: what it asks for and what there is, as a sentence. Empty where that is not known."""
    job = event.facts.get("job")
    why = job.get("why") if isinstance(job, dict) and event.type is ExceptionType.UNAVAILABLE else ""
    return why if isinstance(why, str) else ""


class EngineCaseId(NamedTuple):
    """A case of an engine; the engine of this server has the empty name."""

    engine: str
    case: CaseId


def engine_case_of(decision: Decision) -> EngineCaseId:
    return EngineCaseId(decision.engine, decision.case)


def name_of(case: EngineCaseId) -> CaseId:
    """What people call a case: one of another engine with that engine's name before it."""
    return CaseId(f"{case.engine}:{case.case}") if case.engine else case.case


def case_name(decision: Decision) -> CaseId:
    """What people call the case that a decision is about. Whatever tells of a decision tells of this: an engine chooses
    the names of its cases, and a case of somebody else may have the same."""
    return name_of(engine_case_of(decision))


class DecisionBegun(NamedTuple):
    """Something follows from this decision: its exlet runs, or it waits for a person. Published again when a person has
    taken it up."""

    decision: Decision


class DecisionEnded(NamedTuple):
    """Nothing more follows from this decision."""

    decision: Decision


class DecisionWaits(NamedTuple):
    """Nobody has taken up the failure; a person is asked what to do."""

    decision: Decision


def is_by_hand(conclusion: Conclusion | None) -> bool:
    """Whether a person chose it, and no rule."""
    return conclusion is not None and conclusion.rule == BY_HAND


def successor_id(before: Decision) -> str:
    base, _, number = before.id.partition("!")
    return f"{base}!{int(number or 1) + 1}"


def waiting_successor(before: Decision, clock: Clock) -> Decision:
    """A decision that takes the place of another and waits for a person, or for a rule."""
    after = successor(before, Conclusion(rules="", version=0, type=before.type, task="", rule=0, exlet=""), clock)
    return replace(after, state="waiting", conclusion=None, safeguard="", released=False)


def successor(before: Decision, said: Conclusion, clock: Clock) -> Decision:
    """A decision that replaces another."""
    return replace(
        before,
        id=successor_id(before),
        at=clock.now(),
        failed_at=before.failed_at or before.at,
        state="running",
        exlet=said.exlet,
        conclusion=said,
        exlet_case=None,
        taken_up_at=0,
        ended_at=0,
        settled_at=0,
        result="",
        steps=[],
        note="",
        replaced_by="",
        tried_in=0,
        request=None,
        taken_up_by="",
        correction=None,
        removes=False,
        unwanted="",
        trials=[],
    )


class OpenMarker(msgspec.Struct, frozen=True):
    id: str


class DecisionStore:
    def __init__(self, store: Store, ledger: Ledger, clock: Clock, homes: HomeRegistry, hub: Hub) -> None:
        self._homes = homes
        self._store = store
        self._ledger = ledger
        self._clock = clock
        self.open: dict[str, Decision] = {}
        self._hub = hub
        # found at the start: finished, but perhaps not everything that follows is done
        self.unclosed: list[Decision] = []
        self._recorded: dict[str, None] = {}
        self.by_exlet: dict[CaseId, str] = {}
        self._of_case: dict[EngineCaseId, dict[str, None]] = {}  # open decisions
        self._of_tree: dict[CaseId, dict[str, None]] = {}  # the same, by the roots of their ids
        self.retries: dict[
            EngineCaseId, dict[int, list[str]]
        ] = {}  # items that are retried, and the decisions that ordered the retry

    async def load(self, roots: Collection[CaseId]) -> None:
        """Load the open decisions of these trees of cases."""
        async for found in self._store.scan(OPEN_DECISION_KIND, only(roots)):
            if root_of(found.id) not in roots:
                continue
            self._ledger.known(OPEN_DECISION_KIND, found.id, found.version)
            kept = await self._store.get(DECISION_KIND, found.id)
            decision = read_or_leave_out(kept, _decode) if kept is not None else None
            if kept is not None and decision is None:
                continue  # its marker stays: whoever can read it continues it
            if kept is None or decision is None or (decision.state == "waiting" and decision.replaced_by):
                self._ledger.drop(OPEN_DECISION_KIND, found.id)
                continue
            self._ledger.known(DECISION_KIND, found.id, kept.version)
            self._keep(decision)
            if not self._is_open(decision):
                self.unclosed.append(decision)

    def take_unclosed(self, roots: Collection[CaseId]) -> list[Decision]:
        """Those of these trees that were found to be finished, each returned once."""
        found = [decision for decision in self.unclosed if root_of(decision.id) in roots]
        self.unclosed = [decision for decision in self.unclosed if root_of(decision.id) not in roots]
        return found

    def of_trees(self, roots: Collection[CaseId]) -> list[Decision]:
        """The open decisions of these trees of cases."""
        return [decision for decision in self.open.values() if root_of(decision.id) in roots]

    def of_tree(self, root: CaseId) -> list[Decision]:
        """The open decisions of one tree of cases."""
        return [self.open[id] for id in self._of_tree.get(root, ()) if id in self.open]

    def _keep(self, decision: Decision) -> None:
        self._homes.hold(decision.id, f"decision {decision.id}")
        self.open[decision.id] = decision
        if decision.exlet_case is not None:
            self.by_exlet[decision.exlet_case] = decision.id
        self._of_case.setdefault(engine_case_of(decision), {})[decision.id] = None
        self._of_tree.setdefault(root_of(decision.id), {})[decision.id] = None
        if decision.result == RETRYING:
            self._tries(decision).append(decision.id)

    def _tries(self, decision: Decision) -> list[str]:
        return self.retries.setdefault(engine_case_of(decision), {}).setdefault(decision.serial, [])

    @staticmethod
    def _is_open(decision: Decision) -> bool:
        return decision.state in OPEN_STATES or decision.result == RETRYING or decision.correction is not None

    def open_of_case(self, case: EngineCaseId) -> list[Decision]:
        """The open decisions about a case."""
        return [self.open[id] for id in self._of_case.get(case, ()) if id in self.open]

    async def find(self, id: str) -> Decision | None:
        """The decision, if there is one: from memory while it is open, else from the store."""
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

    async def get_many(self, ids: Sequence[str]) -> list[Decision]:
        """Those of the decisions that there are, in this order."""
        await self._ledger.settled()
        kept = {each.id: each for each in await self._store.get_many(DECISION_KIND, ids)}
        found = (self.open.get(id) or (_decode(kept[id].body) if id in kept else None) for id in ids)
        return [decision for decision in found if decision is not None]

    async def reopen(self, id: str) -> Decision:
        """The decision, to be changed; also one that was finished."""
        if (decision := self.open.get(id)) is not None:
            return decision
        await self._ledger.settled()
        kept = await self._store.get(DECISION_KIND, id)
        if kept is None:
            raise NotFound(f"there is no decision {id!r}; `mendflow why CASE` tells those of a case")
        self._ledger.known(DECISION_KIND, id, kept.version)
        return _decode(kept.body)

    def draft(self, decision: Decision) -> None:
        """A decision that is still being made: it can be found here, and is not written."""
        self.open[decision.id] = decision

    def withdraw(self, decision: Decision) -> None:
        """Discard a draft."""
        self.open.pop(decision.id, None)

    def begin(self, decision: Decision) -> None:
        """Open a decision. The marker is written first."""
        self._keep(decision)
        if decision.state in OPEN_STATES:
            self._hub.publish(DecisionBegun(decision))
        self._ledger.touch(OPEN_DECISION_KIND, decision.id, OpenMarker(decision.id))
        self._ledger.touch(DECISION_KIND, decision.id, decision)
        self._tell_waiting(decision)

    def note(self, decision: Decision) -> None:
        """Write a change of an open decision."""
        self._ledger.touch(DECISION_KIND, decision.id, decision)
        if decision.exlet_case is not None:
            self.by_exlet[decision.exlet_case] = decision.id
        self._tell_waiting(decision)

    def amend(self, decision: Decision) -> None:
        """Write what people say about a decision, also about one that has ended: nothing else of it changes."""
        if decision.id in self.open:
            self.note(decision)
        else:
            self._ledger.touch(DECISION_KIND, decision.id, decision, last=True)

    def _tell_waiting(self, decision: Decision) -> None:
        if decision.state == "waiting":
            self._hub.publish(DecisionWaits(decision))

    def mark_retrying(self, decision: Decision) -> None:
        """Its job is retried; the decision stays open until the retry has ended. Earlier retries of the job have
        failed, or this one would not be needed."""
        if decision.result != RETRYING:
            self.end_retries(engine_case_of(decision), decision.serial, "failed")
            decision.result = RETRYING
            self._tries(decision).append(decision.id)
        self.note(decision)

    def record(self, decision: Decision) -> None:
        """A decision without consequences: written once, and not kept in memory. If it is reported twice at the same
        time it is still one."""
        if decision.id in self._recorded:
            return
        self._recorded[decision.id] = None
        if len(self._recorded) > RECORDED_MAX:
            del self._recorded[next(iter(self._recorded))]
        self._hub.publish(DecisionEnded(decision))
        self._ledger.touch(DECISION_KIND, decision.id, decision, last=True)

    def end(self, decision: Decision, state: DecisionState, result: str) -> None:
        """Finish a decision. If its job is being retried, its result is known only after that."""
        decision.state, decision.ended_at = state, self._clock.now()
        if decision.result == RETRYING:
            self.note(decision)
            return
        decision.result = decision.result or result
        self.close(decision)

    def close(self, decision: Decision) -> None:
        self._hub.publish(DecisionEnded(decision))
        self._ledger.touch(DECISION_KIND, decision.id, decision, last=True)
        self._ledger.drop(OPEN_DECISION_KIND, decision.id)
        self._homes.release(decision.id, f"decision {decision.id}")
        self.open.pop(decision.id, None)
        if decision.exlet_case is not None:
            self.by_exlet.pop(decision.exlet_case, None)
        case = engine_case_of(decision)
        if (known := self._of_case.get(case)) is not None:
            known.pop(decision.id, None)
            if not known:
                del self._of_case[case]
        root = root_of(decision.id)
        if (tree := self._of_tree.get(root)) is not None:
            tree.pop(decision.id, None)
            if not tree:
                del self._of_tree[root]

    def is_retrying(self, case: EngineCaseId, serial: int) -> bool:
        """Whether the item is being retried because of an exlet."""
        return serial in self.retries.get(case, ())

    def end_all_retries(self, case: EngineCaseId, result: str) -> None:
        for serial in list(self.retries.get(case, ())):
            self.end_retries(case, serial, result)

    def end_retries(self, case: EngineCaseId, serial: int, result: str, at: Instant = 0) -> None:
        """The retried job has ended with this result, now or at the time that is said."""
        tries = self.retries.get(case, {})
        ended = tries.pop(serial, [])
        if not tries:
            self.retries.pop(case, None)
        for id in ended:
            decision = self.open.get(id)
            if decision is None:
                continue
            decision.result, decision.settled_at = result, at or self._clock.now()
            if decision.state in OPEN_STATES:
                self.note(decision)
            else:
                self.close(decision)

    async def search(
        self, where: Sequence[FieldCondition], *, since: Instant = 0, limit: int = 100, offset: int = 0
    ) -> list[Decision]:
        """The newest first. Open decisions are returned as they are in memory."""
        await self._ledger.settled()
        wanted = [*where, *([FieldCondition("at", since, "ge")] if since else [])]
        found = await self._store.search(
            DECISION_KIND, wanted, order_by="at", descending=True, limit=limit, offset=offset
        )
        read = ((self.open.get(document.id) or read_or_leave_out(document, _decode)) for document in found)
        return [decision for decision in read if decision is not None]

    async def of_case(self, case: CaseId, engine: str = "") -> list[Decision]:
        """All decisions about a case, in their order."""
        found = await self.search([FieldCondition("case", case), FieldCondition("engine", engine)], limit=10_000)
        return sorted(found, key=lambda decision: (decision.at, decision.id))
