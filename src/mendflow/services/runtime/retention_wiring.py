"""Puts the services of retention into a runtime."""

from typing import TYPE_CHECKING

from mendflow.services.retention.assembly import retention_services
from mendflow.services.retention.case_census import all_case_groups
from mendflow.services.retention.references import ReferenceReader
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


async def stored_bytes_of(server: ServerContext, project: str) -> int:
    """How many bytes the stored files take that cases of a project name; one that several name counts once."""
    groups = await all_case_groups(server.store)
    own = {id: group for id, group in groups.items() if group.root is not None and group.root.project == project}
    contents = await ReferenceReader(server.store, server.file_store).contents(own)
    named = {file for each in contents.values() for file in each.files}
    return sum((await server.file_store.stored_bytes(named)).values())
