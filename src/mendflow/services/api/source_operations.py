"""The part of the domain that is about sources of conditions."""

from mendflow.core.model.sources import SourceSpec, SourceTrial, SourceView
from mendflow.services.api.view_operations import ViewOperations
from mendflow.services.recovery.sources import SourceRegistry


class SourceOperations(ViewOperations):
    async def rule_sources(self) -> list[SourceView]:
        await self._settled()
        return await self._sources.all()

    async def put_rule_source(self, source: SourceSpec, *, who: str) -> SourceView:
        return await self._sources.put(source, who=who)

    async def remove_rule_source(self, name: str, *, who: str) -> SourceView:
        return await self._sources.remove(name)

    async def try_rule_source(self, name: str, decision: str = "", *, who: str) -> SourceTrial:
        await self._settled()
        decisions = self._server.runtime.exceptions.decisions
        context = (await decisions.get(decision)).context if decision else {}
        return await self._sources.try_source(name, context)

    @property
    def _sources(self) -> SourceRegistry:
        return self._server.runtime.recovery.sources
