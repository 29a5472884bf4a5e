"""What a case was told from outside while it ran, as one digest: messages, timers, answers of people and partners, and
what was written into it or ended by hand.

The same flow with the same inputs has the same data in two runs if nothing came from outside, or if the same came in
the same order. So whoever wants to know whether something still holds in another run compares digests, and what has not
come in the same order counts as other data. Results of jobs, stagings and called cases are not in it: a run that has
not taken them from the earlier one has run something."""

from collections.abc import Callable
from hashlib import sha256
from typing import Any, Final

import msgspec

from mendflow.core.engine.messages import (
    Deliver,
    Fact,
    FinishItem,
    FireTimer,
    ForceComplete,
    ForceFail,
    RemoveItem,
    RestartItem,
    WriteData,
)
from mendflow.core.engine.state import Case
from mendflow.core.model.flow import Call, JobActivity, Stage

_encode = msgspec.json.Encoder(order="deterministic").encode


def add_external_fact(case: Case, fact: Fact) -> None:
    """Add a fact to what the case was told, if it is one that brings something from outside."""
    read = _CONTENTS.get(type(fact))
    content = read(case, fact) if read is not None else None
    if content is not None:
        case.external_digest = sha256(_encode([case.external_digest, type(fact).__name__, content])).hexdigest()


def _place(case: Case, serial: int) -> tuple[Any, ...] | None:
    """The activity that has given an order, and the iterations that it is in. Serials may be others in another run."""
    owner = case.instances.get(case.index.serials.get(serial, 0))
    return (owner.node, owner.path) if owner is not None else None


def _answer(case: Case, fact: FinishItem) -> object:
    place = _place(case, fact.serial)
    if place is None or isinstance(case.plan.nodes[place[0]].activity, JobActivity | Stage | Call):
        return None
    fault = fact.outcome.fault
    return place, fact.outcome.outputs, fault.name if fault is not None else ""


_CONTENTS: Final[dict[type, Callable[[Case, Any], object]]] = {
    Deliver: lambda _, fact: (fact.channel, fact.value, fact.correlation),
    FinishItem: _answer,
    FireTimer: lambda case, fact: _place(case, fact.serial),
    WriteData: lambda _, fact: (fact.item, fact.values),
    RestartItem: lambda _, fact: (fact.item, fact.values) if fact.values else None,
    ForceComplete: lambda _, fact: (fact.item, fact.outputs),
    ForceFail: lambda _, fact: (fact.item, fact.fault.name, fact.proceed),
    RemoveItem: lambda _, fact: fact.item,
}
