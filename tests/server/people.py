"""People with roles in projects, as the server meets them. A token is its owner's name."""

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager

from mendflow.client import Client
from mendflow.core.model.errors import Unauthorized
from mendflow.core.model.principals import Principal, ProjectRole
from mendflow.server.access import AccessControl, RequestOrigin, allowed_roles, check_roles
from mendflow.server.runner import HttpServer

As = Callable[[str], Client]
"""The client of somebody, by name."""

PEOPLE = {
    "root": Principal("root", frozenset({"admin"})),
    "ann": Principal("ann", frozenset({"user"}), {"red": "author"}),
    "olga": Principal("olga", frozenset({"user"}), {"red": "operator"}),
    "vera": Principal("vera", frozenset({"reader"}), {"red": "viewer"}),
    "rita": Principal("rita", frozenset({"user", "reviewers"}), {"red": "operator"}),
    "boris": Principal("boris", frozenset({"user"}), {"blue": "author"}),
    "clerk": Principal("clerk", frozenset({"user"})),
    "guest": Principal("guest", frozenset({"reader"})),
}


def in_project(name: str, project: str, role: ProjectRole) -> Principal:
    return Principal(name, frozenset(), {project: role})


class KnownPeople(AccessControl):
    """Access control that knows these people."""

    def __init__(self, people: Iterable[Principal] = PEOPLE.values()) -> None:
        super().__init__()
        self._people = {each.name: each for each in people}

    def admit(
        self, method: str, path: str, headers: Iterable[tuple[bytes, bytes]], origin: RequestOrigin | None = None
    ) -> Principal:
        shown = dict(headers).get(b"authorization", b"").decode().partition(" ")[2]
        caller, allowed = self._people.get(shown), allowed_roles(method, path)
        if caller is None:
            if allowed.anybody:
                return Principal("", frozenset())
            raise Unauthorized("this server wants a token")
        check_roles(caller, allowed)
        return caller


@asynccontextmanager
async def clients_of(names: Iterable[str], served: HttpServer) -> AsyncIterator[As]:
    async with AsyncExitStack() as stack:
        clients = {name: await stack.enter_async_context(Client(served.url, token=name)) for name in names}
        yield clients.__getitem__
