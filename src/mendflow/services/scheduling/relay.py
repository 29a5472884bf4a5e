"""The contract of the relay to the other servers on the store, as the exchange uses it. cluster/relay implements it."""

from typing import Protocol

from mendflow.core.model.ids import JobId, PilotId
from mendflow.core.model.sync import AttemptReport, SyncRequest
from mendflow.services.scheduling.answer import AnswerBuilder
from mendflow.services.scheduling.pilot_records import PilotRecord


class RelayRound(Protocol):
    """One exchange of a pilot, relayed to the servers that its attempts belong to."""

    unowned_reports: list[AttemptReport]  # reports that no server answers for

    async def go(self) -> None: ...
    async def fetch(self, want: int) -> bool:
        """Fetch jobs from another server that has more than its own pilots take; whether there were some."""
        ...


class PilotRelay(Protocol):
    def start(self) -> None: ...
    async def stop(self) -> None: ...
    def check_promise(self) -> None:
        """Raise if others may be taking over this server's cases by now: then it may not make promises to any pilot."""
        ...

    async def announce_promises(self) -> None:
        """Wait until the other servers can read for which jobs this one has promised nothing so far."""
        ...

    def mine(self, job: JobId) -> bool: ...
    def pilot_arrived(self, pilot: PilotId, serial: int) -> None:
        """A pilot that was connected to another server until now, or to none."""
        ...

    def forget(self, pilot: PilotId) -> None: ...
    def nudged(self, server: str) -> None:
        """Another server reports that it has more jobs than slots."""
        ...

    def concerns_peers(self, pilot: PilotId, request: SyncRequest, draft: AnswerBuilder) -> bool: ...
    def servers_for(self, request: SyncRequest) -> list[str]: ...
    def round(self, pilot: PilotRecord, request: SyncRequest, who: str, draft: AnswerBuilder) -> RelayRound: ...
