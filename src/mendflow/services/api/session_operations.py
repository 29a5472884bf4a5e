"""The part of the domain that is about who asks. Whoever opens the store itself, as a command in a folder without a
server does, may do everything; what others may, the server says that they ask (server/sign_in.py)."""

from typing import TYPE_CHECKING

import msgspec

from mendflow.core.model.errors import Conflict
from mendflow.core.model.principals import ADMIN, Principal
from mendflow.core.model.sessions import Identity, SignedInBy, SignInCode, SignInOptions
from mendflow.services.api.view_operations import ViewOperations

if TYPE_CHECKING:
    from mendflow.services.cluster.browser_sessions import BrowserSessions

NO_BROWSER = "no browser can come to a server that does not listen: mendflow ui starts one that does"


class SessionOperations(ViewOperations):
    @property
    def browser_sessions(self) -> "BrowserSessions":
        return self._server.browser_sessions

    async def me(self, *, who: str, teller: str = "") -> Identity:
        known = self.identity(Principal(who, frozenset({ADMIN})), [], "socket")
        return msgspec.structs.replace(known, teller=teller or who)

    def identity(self, caller: Principal, may: list[str], signed_in_by: SignedInBy) -> Identity:
        runtime = self._server.present
        named = {each: caller.role_in(each) for each in caller.own_projects} if not caller.is_admin else {}
        return Identity(
            name=caller.name,
            roles=sorted(caller.roles),
            projects={project: role for project, role in named.items() if role is not None},
            installation=caller.is_admin,
            may=sorted(may),
            server=self._server.membership.id if self._server.membership.shared else self._server.settings.host,
            domain=runtime.connected.connections.own.name if runtime is not None else "",
            version=self._server.version,
            signed_in_by=signed_in_by,
            teller=caller.teller,
            no_jobs_by_tokens=self._server.access_tokens.no_jobs_because() if caller.is_admin else "",
        )

    async def sign_in_options(self) -> SignInOptions:
        return SignInOptions(signed_in=True)

    async def create_sign_in_code(self) -> SignInCode:
        raise Conflict(NO_BROWSER)
