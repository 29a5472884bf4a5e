"""The part of the domain that is about named limits."""

from msgspec.structs import replace

from mendflow.core.model.named_limits import LimitCount, LimitView
from mendflow.core.model.principals import EVERYTHING, Sight, person_text
from mendflow.services.api.view_operations import ViewOperations


class LimitOperations(ViewOperations):
    async def limits(self, *, sight: Sight = EVERYTHING) -> list[LimitView]:
        """Of jobs of other projects that use a limit nothing is shown but that it is used."""
        found = [each for each in await self._server.runtime.limits.all() if sight.sees(each.project)]
        return [await self._of_sight(each, sight) for each in found]

    async def _of_sight(self, view: LimitView, sight: Sight) -> LimitView:
        return replace(view, jobs=[each for each in view.jobs if await self.is_seen(each.job, sight)])

    async def limit(self, name: str, *, sight: Sight = EVERYTHING) -> LimitView:
        return await self._of_sight(await self._server.runtime.limits.view(name), sight)

    async def set_limit(self, name: str, count: LimitCount, *, who: str, project: str = "") -> LimitView:
        view = await self._server.runtime.limits.set(name, count.count, who=who, project=project)
        self._server.runtime.notices.post(
            f"limit {name} was set to {count.count} by {person_text(who)}", project=view.project
        )
        await self._settled()
        return view

    async def remove_limit(self, name: str, *, who: str) -> LimitView:
        view = await self._server.runtime.limits.remove(name)
        self._server.runtime.notices.post(f"limit {name} was removed by {person_text(who)}", project=view.project)
        await self._settled()
        return view
