"""Puts the services of retention into a runtime."""

from typing import TYPE_CHECKING

from mendflow.services.retention.assembly import retention_services
from mendflow.services.retention.service import Retention
from mendflow.services.runtime.server_context import ServerContext

if TYPE_CHECKING:
    from mendflow.services.runtime.runtime import Runtime


def retention_of(runtime: "Runtime", server: ServerContext) -> Retention:
    return retention_services(
        store=server.store,
        ledger=runtime.ledger,
        clock=server.clock,
        homes=runtime.homes,
        file_store=server.file_store,
        membership=server.membership,
        notices=runtime.notices,
        reports=server.settings.reports,
        quiet=not server.settings.schedules and not server.membership.shared,
        new_id=lambda: server.chance(8),
    )
