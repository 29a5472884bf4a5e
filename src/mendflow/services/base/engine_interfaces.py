"""The three narrow interfaces between an engine and the exception service (EX-10).

The engine of this server is called in process, an engine of another system over HTTP; the service treats both alike. A:
flows. B: cases and items. X: the engine reports events, and is told whether to continue. The engine knows nothing of
exceptions: it reports points in the life of its cases and items, and does what interface B says."""

from typing import Protocol

import msgspec

from mendflow.core.model.faults import Fault
from mendflow.core.model.ids import CaseId, Instant, ItemId
from mendflow.core.model.repair import ExceptionEvent
from mendflow.core.model.values import Value
from mendflow.core.model.views import CaseHold, CaseTask


class ItemFacts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A live item as the context shows it. `attempts` is set by engines that count them; ours says how often the item
    was restarted and after which level, and the meta-scheduler knows the rest."""

    item: ItemId
    task: str
    kind: str
    status: str
    serial: int = 0
    data: dict[str, Value] = {}
    attempts: int = 0
    restarts: int = 0
    level: int = 0
    started_at: Instant = 0


class CaseFacts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A live case as the context shows it. `items` are live ones, the one asked about among them; `statuses` are those
    of all items, by name; `jobs` are the results of finished items. `is_started_here`: all decisions about it were made
    by this server since it started."""

    case: CaseId
    flow: str
    version: str
    status: str
    started_at: Instant
    data: dict[str, Value] = {}
    parent: CaseId | None = None
    mends: CaseId | None = None
    items: list[ItemFacts] = []
    statuses: dict[str, str] = {}
    jobs: dict[str, Value] = {}
    undoable: int = 0  # how many of its completed items can be undone
    is_started_here: bool = False
    catches: list[str] = []  # faults of the item asked about that the flow has handlers for; `*` is all


class InterfaceA(Protocol):
    async def flows(self) -> list[str]: ...


class InterfaceB(Protocol):
    """`by` makes a repeated call harmless. If a case or item is no longer live, nothing happens and False is
    returned."""

    def project_of(self, case: CaseId) -> str | None:
        """The project of a live case; None if it is over, or not known."""
        ...

    def open_tasks(self, case: CaseId, item: ItemId | None) -> list[CaseTask]:
        """The open user tasks that end with the item; without one, with the case, if it is part of another."""
        ...

    async def cases_of(self, flow: str, project: str) -> list[CaseId]:
        """The live cases of a flow of this project; others may have a flow of the same name."""
        ...

    async def facts(self, case: CaseId, item: ItemId | None = None) -> CaseFacts | None: ...
    async def suspended(self, case: CaseId, item: ItemId | None) -> bool: ...
    async def suspend(self, case: CaseId, item: ItemId | None, *, holder: str, by: str) -> bool: ...
    async def resume(self, case: CaseId, item: ItemId | None, *, holder: str, by: str) -> bool: ...
    async def cancel(self, case: CaseId, *, reason: str, by: str) -> bool: ...
    async def restart(
        self, case: CaseId, item: ItemId, *, by: str, values: dict[str, Value] | None = None, level: int = 0
    ) -> bool:
        """Run the item again, with its data as of its start; `values` are only the values that changed, and `level` is
        the retry level that it has waited in."""
        ...

    async def complete(self, case: CaseId, item: ItemId, outputs: Value, *, by: str) -> bool: ...
    async def fail(self, case: CaseId, item: ItemId, fault: Fault, *, proceed: bool, by: str) -> bool: ...
    async def remove(self, case: CaseId, item: ItemId, *, by: str) -> bool: ...
    async def write(
        self, case: CaseId, item: ItemId | None, values: dict[str, Value], *, by: str, ended: int = 0
    ) -> bool:
        """Write into the data of the case or of the item. `ended` is the serial of an item whose end is held: then it
        is written into what the item gave."""
        ...

    async def held_by(self, holder: str, case: CaseId) -> list[CaseHold]:
        """What this exlet has suspended in a case."""
        ...

    async def release(self, event: str) -> None:
        """Continue what was held when the event of this id was reported, if it is still held."""
        ...


class Engine(InterfaceA, InterfaceB, Protocol):
    """One engine, as the service sees it."""


class InterfaceX(Protocol):
    async def tell(self, event: ExceptionEvent) -> bool:
        """True: hold what was about to happen (the start of the case, the start of the item, its end) until `release`.
        False: go on. An event that is reported again under the same id is decided once."""
        ...
