"""What loops let fail, from when that is decided until their cases have heard of it.

Several items of a loop may fail at once. Each of them counts for the next one, so that of those that a loop lets fail
there are never more than it says. What fails in a called case is noted in the case of the loop."""

from typing import NamedTuple

from mendflow.core.engine.caught_faults import LetFail, still_to_hear
from mendflow.core.model.ids import CaseId
from mendflow.services.base.hub import Hub
from mendflow.services.cases.facts import CaseLeft
from mendflow.services.cases.live_case import LiveCase


class ToleratedTurn(NamedTuple):
    """What a loop of a case lets fail."""

    case: CaseId
    turn: LetFail


class ToleratedTurns:
    def __init__(self, hub: Hub) -> None:
        self._turns: dict[CaseId, set[LetFail]] = {}
        hub.subscribe(CaseLeft, lambda left: self._forget(left.case))

    def add(self, tolerated: ToleratedTurn) -> None:
        self._turns.setdefault(tolerated.case, set()).add(tolerated.turn)

    def of(self, live: LiveCase) -> set[LetFail]:
        """Those of a case that it has still to hear of."""
        waiting = still_to_hear(live.case, self._turns.pop(live.id, ()))
        if waiting:
            self._turns[live.id] = waiting
        return waiting

    def _forget(self, case: CaseId) -> None:
        self._turns.pop(case, None)
