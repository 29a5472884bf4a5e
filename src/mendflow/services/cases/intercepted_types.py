"""The types of exception that flows have rules for: at which points a case is intercepted."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from mendflow.core.model.ids import CaseId
from mendflow.core.model.repair import ExceptionType


class InterceptedTypes:
    """The types of exception that a flow has rules for. Those that every job passes are attributes, so that the check
    is one look-up."""

    __slots__ = ("item_post", "item_pre", "types")

    def __init__(self, types: frozenset[ExceptionType] = frozenset()) -> None:
        self.types = types
        self.item_pre = ExceptionType.ITEM_PRE in types
        self.item_post = ExceptionType.ITEM_POST in types

    def __contains__(self, type: ExceptionType) -> bool:
        return type in self.types


InterceptedFlows = Mapping[str, InterceptedTypes]
NO_TYPES: Final = InterceptedTypes()


class NoInterception(dict[str, InterceptedTypes]):
    """No flow has rules."""

    def __missing__(self, flow: str) -> InterceptedTypes:
        return NO_TYPES


class RulesChanged(NamedTuple):
    """Rules were added or changed: from now on these flows are intercepted at these points."""

    watched: InterceptedFlows


def event_id(case: CaseId, serial: int, type: ExceptionType, *, reopened: int = 0) -> str:
    """`reopened`: how often the case has gone on since it failed. A call keeps its serial then, and may fail anew."""
    again = f"~{reopened + 1}" if reopened and type is ExceptionType.ABORT else ""
    return f"{case}/{serial}{again}/{type.value}" if serial else f"{case}/{type.value}"
