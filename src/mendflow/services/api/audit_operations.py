"""The part of the domain that is about the audit log. It is written where requests are answered, not here."""

from collections.abc import AsyncIterator
from functools import cached_property
from typing import TYPE_CHECKING

from mendflow.core.model.audit import AuditPage, AuditQuery, ChainView
from mendflow.lazy import LazyModule
from mendflow.services.api.view_operations import ViewOperations

if TYPE_CHECKING:
    from mendflow.services.audit import audit_search, chain_store, unrecorded_acts
else:
    audit_search = LazyModule("mendflow.services.audit.audit_search")
    chain_store = LazyModule("mendflow.services.audit.chain_store")
    unrecorded_acts = LazyModule("mendflow.services.audit.unrecorded_acts")


class AuditOperations(ViewOperations):
    @cached_property
    def unrecorded_acts(self) -> "unrecorded_acts.UnrecordedActs":
        """Who does something past the record tells these."""
        server = self._server
        return unrecorded_acts.UnrecordedActs(server.store, lambda: server.membership.id, server.clock.now)

    async def find_audit(self, query: AuditQuery) -> AuditPage:
        return await audit_search.search(chain_store.ChainStore(self._server.store), query)

    async def verify_audit(self) -> list[ChainView]:
        chains = chain_store.ChainStore(self._server.store)
        return [await chains.check(server) for server in await chains.servers()]

    def export_audit(self, since: int = 0, until: int = 0) -> AsyncIterator[bytes]:
        """Every entry as it is stored, one in each line."""
        return chain_store.ChainStore(self._server.store).export(since, until)
