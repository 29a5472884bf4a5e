"""Which project something belongs to.

A tree of cases is in one project for good, so what was once read of it is kept; of a case that lives here nothing is
read at all. A name of a flow is that of its rules and of its schedule too, and belongs to the project of whichever was
there first. A schedule belongs to the project of its flow. Names of flows and schedules stay where they are when what
they name is removed: cases, rules and statistics are found by them."""

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from mendflow.core.data.paths import logical_name
from mendflow.core.model.errors import NotFound
from mendflow.core.model.ids import CaseId
from mendflow.core.model.principals import DEFAULT_PROJECT, NO_PROJECT, Sight, project_name_flaw
from mendflow.core.model.rules import DEFAULT_RULES
from mendflow.core.model.views import ChangeEvent
from mendflow.services.base.alerts import OF_PROJECTS
from mendflow.services.base.cluster import CASE_KIND, first_case_of
from mendflow.services.base.notices import ALERT_CHANGES
from mendflow.services.data.catalogue.files import FILE_KIND
from mendflow.services.data.sets.store import SET_KIND
from mendflow.services.runtime.server import Server
from mendflow.services.schedules.store import SCHEDULE_KIND
from mendflow.services.scheduling.limit_store import LIMIT_KIND
from mendflow.services.scheduling.secret_service import JOB_SECRET_KIND

REMEMBERED_MAX: Final = 100_000
OF_ALL: Final = ""
"""Stands for a project where something belongs to the whole installation, and may be looked at by everybody."""


class _Owned(msgspec.Struct):
    project: str = DEFAULT_PROJECT


class _OwnedLimit(msgspec.Struct):
    project: str = DEFAULT_PROJECT
    count: int | None = None


class _Scheduled(msgspec.Struct):
    flow: str


class _ScheduleBody(msgspec.Struct):
    spec: _Scheduled


_decode = msgspec.json.Decoder(_Owned).decode
_decode_limit = msgspec.json.Decoder(_OwnedLimit).decode
_decode_schedule = msgspec.json.Decoder(_ScheduleBody).decode


class ProjectLookup:
    def __init__(self, server: Server) -> None:
        self._server = server
        self._trees: OrderedDict[CaseId, str] = OrderedDict()
        self._ways: dict[str, Callable[[str], Awaitable[str | None]]] = {
            "case": self.of_case,
            "decision": self.of_case,
            "flow": self.of_flow,
            "rules": self.of_rules,
            "secret": self._of_secret,
            "limit": self._of_limit,
            "schedule": self._of_schedule_name,
            "data set": self._of_data_set,
            "logical file": self._of_logical_file,
            "proposal": self._of_proposal,
            "engine": self._of_engine,
            "project": self._of_project,
            "anything": self._of_anything,
        }

    async def find(self, kind: str, name: str) -> str | None:
        """The project of what has this name; None if there is no such thing."""
        return await self._ways[kind](name)

    # Cases, and all that is named after them

    async def of_case(self, id: str) -> str | None:
        """`id` is a case, or begins with one: a job, a user task, an item, a decision; or ENGINE:CASE.
        The bare name of an engine is no case, and may look like one."""
        story = first_case_of(id)
        live = self._server.runtime.manager.live.get(story)
        if live is not None:
            return live.document.project
        known = self._trees.get(story)
        if known is None:
            known = await self._read_tree(story)
            if known is not None:
                self._remember(story, known)
        if known is None and id != story:  # ENGINE:CASE, or an exlet for one: ENGINE.CASE.x1
            return self._server.runtime.engines.project_of(story)
        return known

    def _remember(self, story: CaseId, project: str) -> None:
        self._trees[story] = project
        if len(self._trees) > REMEMBERED_MAX:
            self._trees.popitem(last=False)

    async def _read_tree(self, story: CaseId) -> str | None:
        runtime = self._server.runtime
        await runtime.ledger.settled()
        found = await self._server.store.get(CASE_KIND, story)
        if found is not None:
            return _decode(found.body).project
        pruned = await runtime.retention.pruned(story)
        return pruned.project if pruned is not None else None

    async def sees_event(self, sight: Sight, event: ChangeEvent) -> bool:
        return sight.projects is None or sight.sees(await self.of_event(event))

    async def of_event(self, event: ChangeEvent) -> str:
        """What is about no case belongs to the default project; a message about none, to administrators; the end of an
        alert, to whom the alert belongs, for it names that. What is about a case that nobody knows belongs to no
        project."""
        if event.case:
            return await self.of_case(event.case) or NO_PROJECT
        if event.kind == "alert" and event.state in ALERT_CHANGES:
            return await self.of_alert(event.message, "")
        return NO_PROJECT if event.kind == "alert" and not event.state else DEFAULT_PROJECT

    async def of_alert(self, alert: str, case: str) -> str:
        """One about no case is of the project of its rules, its schedule or its proposal; those about the default rules
        tell of cases of all projects. What is about pilots and servers belongs to the default project."""
        if case:
            return await self.of_case(case) or NO_PROJECT
        kind, _, rest = alert.partition("/")
        subject, _, episode = rest.rpartition("/")
        if kind not in OF_PROJECTS:
            return DEFAULT_PROJECT
        match kind:
            case "rule-errs":
                return await self.of_rules(subject.partition("/")[0]) or NO_PROJECT
            case "not-started":
                return await self._of_schedule_name(subject) or NO_PROJECT
            case "failure":
                return await self._of_proposal(episode) or NO_PROJECT
        return NO_PROJECT

    # What has a name of its own

    async def of_flow(self, name: str) -> str | None:
        runtime = self._server.runtime
        if self._server.membership.shared or runtime.flows.deployed(name) is None:
            await runtime.flows.refresh(name)
        found = runtime.flows.project_of(name)
        if found is None:
            found = await self._of_rules_alone(name)
        return found if found is not None else await runtime.flows.project_of_removed(name)

    async def _of_rules_alone(self, name: str) -> str | None:
        rules = self._server.runtime.exceptions.rules
        if self._server.membership.shared:
            await rules.refresh(name)
        known = rules.newest_or_empty(name)
        return known.project if known.version else None

    async def of_rules(self, name: str) -> str | None:
        return OF_ALL if name == DEFAULT_RULES else await self.of_flow(name)

    async def _of_secret(self, name: str) -> str | None:
        if (found := await self._stored(JOB_SECRET_KIND, name)) is not None:
            return _decode(found).project
        return DEFAULT_PROJECT if self._server.runtime.secrets.is_given(name) else None

    async def _of_limit(self, name: str) -> str | None:
        """A limit that jobs name and nobody has set is nobody's."""
        found = await self._stored(LIMIT_KIND, name)
        limit = _decode_limit(found) if found is not None else None
        return limit.project if limit is not None and limit.count is not None else None

    async def _of_schedule_name(self, name: str) -> str | None:
        found = await self._of_schedule(name)
        return found if found is not None else await self.of_flow(name)

    async def _of_schedule(self, name: str) -> str | None:
        """Of a schedule that is there, or was."""
        if (claimed := await self._server.runtime.schedules.service.project_of(name)) is not None:
            return claimed
        if (found := await self._stored(SCHEDULE_KIND, name)) is None:
            return None
        return await self.of_flow(_decode_schedule(found).spec.flow) or DEFAULT_PROJECT

    async def _of_data_set(self, name: str) -> str | None:
        found = await self._stored(SET_KIND, name)
        return _decode(found).project if found is not None else None

    async def _of_logical_file(self, name: str) -> str | None:
        found = await self._stored(FILE_KIND, logical_name(name))
        return _decode(found).project if found is not None else None

    async def _of_engine(self, name: str) -> str | None:
        return self._server.runtime.engines.project_of(name)

    async def _of_project(self, name: str) -> str | None:
        """Itself, whether or not there is anything of it."""
        return name if not project_name_flaw(name) else None

    async def _of_proposal(self, name: str) -> str | None:
        """What is proposed for the default rules is for administrators alone: its evidence is of all projects."""
        try:
            found = await self._server.runtime.learning.proposal(name)
        except NotFound:
            return None
        return await self.of_rules(found.rules) if found.rules != DEFAULT_RULES else None

    async def _of_anything(self, name: str) -> str | None:
        """A case and what is named after it, a schedule, or a pilot, which is everybody's."""
        if (of_case := await self.of_case(name)) is not None:
            return of_case
        if (of_schedule := await self._of_schedule(name)) is not None:
            return of_schedule
        return OF_ALL if name in self._server.runtime.meta.pilots else None

    async def _stored(self, kind: str, name: str) -> bytes | None:
        await self._server.runtime.ledger.settled()
        found = await self._server.store.get(kind, name)
        return found.body if found is not None else None
