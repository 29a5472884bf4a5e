"""Projects: their weights in the fair share, their quotas, what they use, and their members."""

from mendflow.core.model.members import MemberRequest, MemberView
from mendflow.core.model.projects import FairShareSettings, ProjectSettings, ProjectView
from mendflow.operations.arguments import Body, StrictBody
from mendflow.operations.operation import Calls, operation
from mendflow.operations.roles import ADMINISTRATORS, PROJECT_ADMINS, VIEWERS
from mendflow.operations.subjects import INSTALLATION, LISTED, PROJECT


class ProjectCalls(Calls, tag="projects"):
    @operation("GET", "/projects", VIEWERS, LISTED)
    async def projects(self) -> list[ProjectView]:
        """Projects, by name: those for which something is set, that own flows, or have run jobs. Members see their own.
        The share of each in all is told to administrators."""

    @operation("GET", "/projects/{name}", VIEWERS, PROJECT)
    async def project(self, name: str) -> ProjectView:
        """A project: its weight, its quotas, and what it uses."""

    @operation("PUT", "/projects/{name}", ADMINISTRATORS, INSTALLATION, repeatable=True)
    async def set_project(self, name: str, settings: StrictBody[ProjectSettings]) -> ProjectView:
        """Set the weight and the quotas of a project, all of them: a quota that is left out does not hold. It holds at
        once: if more is in use, nothing is stopped, and nothing starts until enough has ended."""

    @operation("DELETE", "/projects/{name}", ADMINISTRATORS, INSTALLATION)
    async def remove_project_settings(self, name: str) -> ProjectView:
        """Remove what is set for a project. It has no quotas then, and the weight 1. What it owns stays."""

    @operation("GET", "/projects/{name}/members", VIEWERS, PROJECT)
    async def members(self, name: str) -> list[MemberView]:
        """Who is what in a project, by name. By a membership, or by a token in the store that names the project; whom
        the issuer of OpenID Connect gives a role here is not known before it comes."""

    @operation("PUT", "/projects/{name}/members/{member}", PROJECT_ADMINS, PROJECT, repeatable=True)
    async def put_member(self, name: str, member: str, wish: StrictBody[MemberRequest]) -> MemberView:
        """Say what somebody is in a project. That is whoever has a token of this name that names no projects, or is
        called so by the issuer. It holds at once, and at every server on the store within a second."""

    @operation("DELETE", "/projects/{name}/members/{member}", PROJECT_ADMINS, PROJECT)
    async def remove_member(self, name: str, member: str) -> MemberView:
        """End a membership. What a token or the issuer says of somebody stays."""

    @operation("GET", "/fair-share", VIEWERS, INSTALLATION)
    async def fair_share(self) -> FairShareSettings:
        """After how long what was used counts half in the fair share."""

    @operation("PUT", "/fair-share", ADMINISTRATORS, INSTALLATION, repeatable=True)
    async def set_fair_share(self, settings: Body[FairShareSettings]) -> FairShareSettings:
        """Set after how long what was used counts half. It holds at once, for what was used before too."""
