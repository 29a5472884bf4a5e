"""The part of the domain that is about the sizes of jobs."""

from typing import TYPE_CHECKING

from mendflow.core.model.principals import EVERYTHING, NO_PROJECT, Sight
from mendflow.core.model.size_views import SizeView
from mendflow.lazy import LazyModule
from mendflow.services.api.view_operations import ViewOperations

if TYPE_CHECKING:
    from mendflow.core.learning import sizes_views
else:
    sizes_views = LazyModule("mendflow.core.learning.sizes_views")


class SizeOperations(ViewOperations):
    async def sizes(
        self, *, flow: str = "", name: str = "", limit: int = 1000, sight: Sight = EVERYTHING
    ) -> list[SizeView]:
        """By flow and name. Jobs of flows that no project has, as those that come by the port of jobs, may be of any:
        they are for those who see all."""
        found = await self._server.runtime.sizes.statistics(flow, name)
        if sight.projects is not None:
            found = [each for each in found if sight.sees(await self.project_lookup.of_flow(each.flow) or NO_PROJECT)]
        return [
            sizes_views.size_view(each.flow, each.name, each.jobs, each.runs) for each in found[:limit] if each.runs
        ]
