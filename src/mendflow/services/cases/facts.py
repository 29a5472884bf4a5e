"""The facts that the flow manager publishes through the hub, and the contracts that it asks higher services for."""

from collections.abc import Coroutine, Sequence
from typing import Any, NamedTuple, Protocol

import msgspec

from mendflow.core.engine.messages import ItemFailed, Order, RunPrimitive
from mendflow.core.model.ids import CaseId
from mendflow.core.model.jobs import Job, Outcome
from mendflow.services.cases.live_case import CaseDocument, LiveCase


class CaseEnded(NamedTuple):
    """Published in the same step as the end, before the case's document is written."""

    document: CaseDocument


class CaseLeft(NamedTuple):
    """The case is about to leave this server's memory."""

    case: CaseId


class OrdersGiven(msgspec.Struct, frozen=True, eq=False, gc=False):
    """A case gave these orders; they are about to be carried out."""

    live: LiveCase
    orders: Sequence[Order]


class SuspensionChanged(msgspec.Struct, frozen=True, eq=False, gc=False):
    """A case, or an item of it, was suspended or resumed."""

    live: LiveCase


class ItemFinished(msgspec.Struct, frozen=True, eq=False, gc=False):
    """The order of an item has ended, and the case is about to be told."""

    live: LiveCase
    serial: int
    outcome: Outcome


class JobFailed(NamedTuple):
    """A job has failed for good: it is neither retried nor mended."""

    live: LiveCase
    serial: int
    outcome: Outcome


class CaseAdmission(Protocol):
    """Knows whether one more case of a project may begin."""

    async def admit(self, case: CaseId, project: str) -> None:
        """Refused if the project has used up a quota. Who was admitted and does not begin is dismissed."""
        ...

    def dismiss(self, case: CaseId, project: str) -> None: ...


class LoadedJobs(Protocol):
    """Told of the jobs of a case that is being loaded."""

    async def jobs_loaded(self, live: LiveCase, jobs: Sequence[Job]) -> None: ...


class OrderExecutor(Protocol):
    """Carries out what a case orders. `reissued` says that the orders may have been carried out before."""

    async def carry_out(self, live: LiveCase, orders: Sequence[Order], *, reissued: bool = False) -> None: ...


class UndoLibrary(Protocol):
    """Knows how to undo tasks whose flow does not say it."""

    @property
    def tasks(self) -> tuple[str, ...]: ...


class RecoveryHooks(Protocol):
    """What the order dispatcher reports to the exception service besides exceptions, and who carries out primitives."""

    async def do(self, live: LiveCase, order: RunPrimitive, reissued: bool) -> None:
        """Carry out the primitive, then finish the item."""
        ...

    def item_failed_early(self, live: LiveCase, order: ItemFailed) -> Coroutine[Any, Any, None]:
        """An item failed before it gave an order. The call itself reads the case as it is now; the result is awaited
        later."""
        ...

    async def exlet_is_waiting(self, live: LiveCase) -> None: ...
    async def case_over(self, live: LiveCase) -> None: ...
    def tried_again(self, case: CaseId, serial: int) -> bool:
        """Whether this job is a retry that an exlet ordered."""
        ...

    def job_over(self, case: CaseId, serial: int, ok: bool) -> None: ...
