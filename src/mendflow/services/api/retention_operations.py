"""The part of the domain that is about retention."""

from typing import TYPE_CHECKING

from mendflow.core.model.principals import person_text
from mendflow.core.model.retention import PruneRequest, PruneView, RetentionRule, RetentionRuleView
from mendflow.services.api.view_operations import ViewOperations

if TYPE_CHECKING:
    from mendflow.services.retention.service import Retention


class RetentionOperations(ViewOperations):
    @property
    def _retention(self) -> "Retention":
        return self._server.runtime.retention

    async def prune(self, request: PruneRequest, *, who: str) -> PruneView:
        return await self._retention.prune(request, who=who)

    async def prune_run(self, id: str) -> PruneView:
        return await self._retention.run(id)

    async def retention_rules(self) -> list[RetentionRuleView]:
        return await self._retention.rules()

    async def put_retention_rule(self, rule: RetentionRule, *, who: str) -> RetentionRuleView:
        view = await self._retention.put_rule(rule, who=who)
        self._server.runtime.notices.post(f"rule {rule.name} of retention was set by {person_text(who)}")
        await self._settled()
        return view

    async def remove_retention_rule(self, name: str, *, who: str) -> RetentionRuleView:
        removed = await self._retention.remove_rule(name)
        self._server.runtime.notices.post(f"rule {name} of retention was removed by {person_text(who)}")
        await self._settled()
        return removed
