"""The part of the domain that is about secrets."""

from mendflow.core.model.principals import EVERYTHING, Sight, person_text
from mendflow.core.model.secrets import SecretValue, SecretView
from mendflow.services.api.view_operations import ViewOperations


class SecretOperations(ViewOperations):
    async def secrets(self, *, sight: Sight = EVERYTHING) -> list[SecretView]:
        return [each for each in await self._server.runtime.secrets.all() if sight.sees(each.project)]

    async def set_secret(self, name: str, secret: SecretValue, *, who: str, project: str = "") -> SecretView:
        view = await self._server.runtime.secrets.set(name, secret.value, who=who, project=project)
        self._server.runtime.notices.post(f"secret {name} was set by {person_text(who)}", project=view.project)
        await self._settled()
        return view

    async def remove_secret(self, name: str, *, who: str) -> SecretView:
        view = await self._server.runtime.secrets.remove(name)
        self._server.runtime.notices.post(f"secret {name} was removed by {person_text(who)}", project=view.project)
        await self._settled()
        return view
