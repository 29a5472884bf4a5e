"""Views of the engines of other systems that use the exception service, and what these are told and asked."""

import msgspec

from mendflow.core.model.ids import CaseId, Instant, ItemId
from mendflow.core.model.principals import DEFAULT_PROJECT
from mendflow.core.model.values import Value
from mendflow.core.model.views import View


class EngineView(View, frozen=True):
    """An engine of another system that uses this service."""

    name: str
    registered_at: Instant
    seen_at: Instant
    waiting: int = 0
    owner: str = ""
    project: str = DEFAULT_PROJECT


class EngineOrder(View, frozen=True):
    """One call of interface B for a foreign engine. It is repeated until it is acknowledged."""

    id: str
    call: str
    case: CaseId = CaseId("")
    item: ItemId | None = None
    with_: dict[str, Value] = msgspec.field(default={}, name="with")


class EventAnswer(View, frozen=True):
    """The answer to an event: whether to hold what was about to happen until the order `release` comes."""

    event: str
    held: bool
