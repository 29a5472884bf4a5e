"""The part of the domain that is about projects: weights, quotas, usage."""

from msgspec.structs import replace

from mendflow.core.model.members import MemberRequest, MemberView
from mendflow.core.model.principals import EVERYTHING, Sight, person_text
from mendflow.core.model.projects import FairShareSettings, ProjectSettings, ProjectView
from mendflow.services.api.view_operations import ViewOperations
from mendflow.services.scheduling.project_service import ProjectService


class ProjectOperations(ViewOperations):
    @property
    def _of_projects(self) -> ProjectService:
        return self._server.runtime.projects

    async def projects(self, *, sight: Sight = EVERYTHING) -> list[ProjectView]:
        """Shares say something of other projects: who does not see all of them gets none."""
        await self._of_projects.look()
        owners = {each.project for each in self._server.runtime.flows.all()}
        views = self._of_projects.all(owners | set(sight.projects or ()))
        if sight.projects is None:
            return views
        return [replace(each, share=None, used_share=None) for each in views if sight.sees(each.name)]

    async def project(self, name: str) -> ProjectView:
        await self._of_projects.look()
        return self._of_projects.view(name)

    async def set_project(self, name: str, settings: ProjectSettings, *, who: str) -> ProjectView:
        view = await self._of_projects.set(name, settings, who=who)
        self._server.runtime.notices.post(
            f"the weight and the quotas of project {name} were set by {person_text(who)}", project=name
        )
        await self._settled()
        return view

    async def remove_project_settings(self, name: str, *, who: str) -> ProjectView:
        view = await self._of_projects.remove(name)
        self._server.runtime.notices.post(
            f"what was set for project {name} was removed by {person_text(who)}", project=name
        )
        await self._settled()
        return view

    async def members(self, name: str) -> list[MemberView]:
        return await self._server.access_tokens.members_of(name)

    async def put_member(self, name: str, member: str, wish: MemberRequest, *, who: str) -> MemberView:
        found = await self._server.access_tokens.put_member(name, member, wish.role, who=who)
        self._server.runtime.notices.post(
            f"{member} was made {found.role} of project {name} by {person_text(who)}", project=name
        )
        await self._settled()
        return found

    async def remove_member(self, name: str, member: str, *, who: str) -> MemberView:
        found = await self._server.access_tokens.remove_member(name, member)
        self._server.runtime.notices.post(f"{who} removed {member} ({found.role}) from project {name}", project=name)
        await self._settled()
        return found

    async def fair_share(self) -> FairShareSettings:
        return self._of_projects.share

    async def set_fair_share(self, settings: FairShareSettings, *, who: str) -> FairShareSettings:
        share = await self._of_projects.set_share(settings)
        self._server.runtime.notices.post(f"the half-life of the fair share was set by {person_text(who)}")
        await self._settled()
        return share

    def count_request(self, project: str) -> None:
        """Refused if the members of a project have sent more requests than it may."""
        self._of_projects.count_request(project)
