"""Members of projects, for all servers on a store: who is what where, besides what tokens say.

All of them stand in one document, beside that of the tokens, and are read with it once a second. Somebody is known by
the name of a token, or by the name that the issuer gives. A token that names projects is for these and no others,
whoever has it; and tokens of pilots, engines and collectors of metrics are for what these do."""

from collections.abc import Callable
from typing import Final

import msgspec

from mendflow.core.model.errors import Conflict, NotFound
from mendflow.core.model.ids import Instant
from mendflow.core.model.members import MemberView
from mendflow.core.model.principals import ENGINE, METRICS, PILOT, Principal, ProjectRole
from mendflow.services.base.contracts import TRIES
from mendflow.stores.contract import Put, Store, StoredDocument, WriteDone

MEMBERS_ID: Final = "members"
MEMBERS_MAX: Final = 1_000
"""Of one project, so that its administrators leave room for those of others."""

ALL_MEMBERS_MAX: Final = 20_000
_SERVING: Final = frozenset({PILOT, ENGINE, METRICS})


class StoredMember(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    project: str
    name: str
    role: ProjectRole
    set_by: str = ""
    set_at: Instant = 0


class MemberDocument(msgspec.Struct, frozen=True):
    members: list[StoredMember] = []


_decode: Final = msgspec.json.Decoder(MemberDocument).decode


class ProjectMembers:
    """`kind` is that of the document."""

    def __init__(self, store: Store, kind: str) -> None:
        self._store = store
        self._kind = kind
        self._version = -1
        self._members: list[StoredMember] = []
        self._by_name: dict[str, dict[str, ProjectRole]] = {}

    def take(self, found: StoredDocument | None) -> bool:
        """Whether others have changed something."""
        version = found.version if found is not None else 0
        if version == self._version:
            return False
        self._know(_decode(found.body).members if found is not None else [], version)
        return True

    def _know(self, members: list[StoredMember], version: int) -> None:
        self._members, self._version = members, version
        self._by_name = {}
        for each in members:
            self._by_name.setdefault(each.name, {})[each.project] = each.role

    def added_to(self, caller: Principal, *, by_issuer: bool = False) -> Principal:
        """Somebody with what it is by its memberships."""
        is_bounded = bool(caller.projects) and not by_issuer
        is_machine = bool(caller.roles) and caller.roles <= _SERVING
        if caller.is_admin or is_bounded or is_machine or caller.name not in self._by_name:
            return caller
        return msgspec.structs.replace(caller, memberships=self._by_name[caller.name])

    def of(self, project: str) -> list[MemberView]:
        return [
            MemberView(name=each.name, role=each.role, set_by=each.set_by, set_at=each.set_at)
            for each in self._members
            if each.project == project
        ]

    async def put(self, new: StoredMember) -> None:
        def with_new(members: list[StoredMember]) -> list[StoredMember]:
            others = [each for each in members if (each.project, each.name) != (new.project, new.name)]
            if sum(each.project == new.project for each in others) >= MEMBERS_MAX:
                raise Conflict(
                    f"project {new.project} has {MEMBERS_MAX} members, and that is the most: remove one, or let the"
                    " issuer of your tokens name the project"
                )
            if len(others) >= ALL_MEMBERS_MAX:
                raise Conflict(
                    f"all projects together have {ALL_MEMBERS_MAX} members, and that is the most; ask an administrator"
                    " of the installation which of them are still needed"
                )
            return sorted([*others, new], key=lambda each: (each.project, each.name))

        await self._change(with_new)

    async def remove(self, project: str, name: str) -> StoredMember:
        removed: list[StoredMember] = []

        def without(members: list[StoredMember]) -> list[StoredMember]:
            removed[:] = [each for each in members if (each.project, each.name) == (project, name)]
            if not removed:
                raise NotFound(
                    f"project {project} has no member {name!r:.100}; mendflow admin projects members {project} lists"
                    " them. What a token says ends with the token"
                )
            return [each for each in members if each not in removed]

        await self._change(without)
        return removed[0]

    async def _change(self, change: Callable[[list[StoredMember]], list[StoredMember]]) -> None:
        """Change the document, from whatever it is by now. What was written holds here at once."""
        for _ in range(TRIES):
            found = await self._store.get(self._kind, MEMBERS_ID)
            after = change(_decode(found.body).members if found is not None else [])
            body = msgspec.json.encode(MemberDocument(after))
            put = Put(self._kind, MEMBERS_ID, body, found.version if found is not None else 0)
            done = (await self._store.write([put]))[0]
            if isinstance(done, WriteDone):
                self._know(after, done.version)
                return
        raise Conflict("the members of projects are changed by several at once, again and again; try again")
