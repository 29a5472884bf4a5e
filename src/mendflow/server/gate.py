"""The gate: whether somebody may ask an operation about this very thing.

Access control has said who asks, and that there is something that it may ask the operation about. Here the project of
what it does ask about is found, by what the operation declares in the table, before the domain does anything. What is
of a project that the caller cannot look into does not exist for it: it is answered as what is not there. Lists get the
projects that they may have something of. Administrators of the installation pass."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from mendflow.core.model.errors import Conflict, Forbidden, InvalidRequest, NotFound
from mendflow.core.model.principals import (
    ADMIN,
    DEFAULT_PROJECT,
    EVERYTHING,
    PILOT,
    Principal,
    ProjectRole,
    Sight,
    project_name_flaw,
)
from mendflow.operations.operation import ApiOperation
from mendflow.operations.subjects import Subject
from mendflow.server.audited_objects import object_of
from mendflow.server.gate_checks import CHECKS
from mendflow.server.request_audit import is_noted, note
from mendflow.server.request_mark import mark_case
from mendflow.services.api.domain import Domain
from mendflow.services.api.domain_reader import LAST
from mendflow.services.api.project_lookup import OF_ALL

PROJECT: Final = "project"
_NAMED_AFTER_CASES: Final = frozenset({"case", "anything"})


class Admission(NamedTuple):
    """What the gate has found. `project` is that of the one thing that it is about; None: of many, or of none."""

    project: str | None = None

    def may_see_secrets(self, caller: Principal) -> bool:
        """Whether values of the environment may be shown: to those who start cases there."""
        return caller.may("operator", self.project) if self.project is not None else caller.may_everywhere("operator")


def sight_of(caller: Principal, operation: ApiOperation) -> Sight:
    """The projects that an operation on many things may be about. Who counts or serves for the whole installation sees
    all of it."""
    if operation.allowed.allow_without_project(caller):
        return EVERYTHING
    return caller.sight(operation.allowed.project or "viewer")


class ProjectGate:
    """One request of a caller about an operation."""

    def __init__(self, domain: Domain, operation: ApiOperation, caller: Principal) -> None:
        self.domain = domain
        self.operation = operation
        self.caller = caller

    async def admit(self, arguments: dict[str, Any]) -> Admission:
        """Refused if the caller may not; else the arguments are completed: `last` is the caller's own, and `project` is
        said where something is made."""
        subject = self.operation.subject
        if subject is None and not self.caller.is_admin:
            raise Forbidden("this is for administrators")
        project: str | None = None
        if subject is not None and subject.is_single:
            await self._name_last(subject, arguments)
            if subject.kind in _NAMED_AFTER_CASES:
                mark_case(str(arguments[subject.argument]))
            project = await self._project(subject, arguments)
        if not self.caller.is_admin and (check := CHECKS.get(self.operation.name)) is not None:
            await check(self, arguments, project or "")
        if not self.caller.roles & {ADMIN, PILOT}:
            self.domain.count_request(project or self.caller.usual_project)
        return Admission(project)

    async def _name_last(self, subject: Subject, arguments: dict[str, Any]) -> None:
        if subject.kind in _NAMED_AFTER_CASES:
            given = arguments[subject.argument]
            arguments[subject.argument] = await self.named(given)
            if arguments[subject.argument] != given:
                note(object=object_of(self.operation, arguments) or arguments[subject.argument])

    async def named(self, name: str) -> str:
        """The same with the caller's own last case in place of the word for it."""
        first = name.partition("/")[0].partition(":")[0]
        return name if first != LAST else name.replace(LAST, await self.domain.newest_case(self.caller.sight()), 1)

    async def _project(self, subject: Subject, arguments: dict[str, Any]) -> str | None:
        """The project that it is about, in which the caller may do it."""
        wanted = arguments.get(PROJECT, "")
        if wanted and (flaw := project_name_flaw(wanted)):
            raise InvalidRequest(flaw, field=PROJECT)
        if self.caller.is_admin and not wanted:
            if PROJECT in arguments:
                found = await self._find(subject, arguments)
                arguments[PROJECT] = found if found is not None else self.caller.usual_project
                note(project=arguments[PROJECT])
            elif self.operation.audited and is_noted():
                note(project=await self._find(subject, arguments) or "")
            return None
        name = await self.subject_name(subject, arguments)
        found = await self._find(subject, arguments)
        note(project=found or "")
        if found is None and subject.kind == "schedule" and subject.may_be_new:
            found = await self.demand_role("author", "flow", arguments[subject.argument].flow)
        elif found is None:
            found = self._new(subject, name, wanted)
        elif wanted and wanted != found:
            if not subject.makes:
                self.demand("viewer", found, subject.kind, name)
            raise Conflict(f"{subject.kind} {name} belongs to another project, and stays there; take another name")
        else:
            self.demand(self.operation.allowed.project, found, subject.kind, name, is_name=subject.makes)
        if PROJECT in arguments:
            arguments[PROJECT] = found
        note(project=found)
        return found or None

    async def _find(self, subject: Subject, arguments: Mapping[str, Any]) -> str | None:
        """The project that what it is about is in by now."""
        name = await self.subject_name(subject, arguments)
        return await self.domain.project_lookup.find(_KINDS.get(subject.kind, subject.kind), name)

    async def subject_name(self, subject: Subject, arguments: Mapping[str, Any]) -> str:
        given = arguments[subject.argument]
        if subject.kind == "rule draft":
            return given.rules or await self._flow_of_draft(given)
        return str(getattr(given, subject.field) if subject.field else given)

    async def _flow_of_draft(self, draft: Any) -> str:
        """The rules of the flow that the case at hand is of. There, only what the caller may see is taken."""
        if draft.decision:
            await self.demand_seen("decision", draft.decision)
            return (await self.domain.decision(draft.decision)).flow
        if draft.group:
            return (await self.domain.failure(draft.group, sight=self.caller.sight())).samples[0].flow
        raise InvalidRequest("say what the rule is for: a decision or a group, or else rules and type", field="rules")

    def _new(self, subject: Subject, name: str, wanted: str) -> str:
        """The project in which something new is made."""
        if not subject.may_be_new:
            if self._is_served_anyway():
                return OF_ALL
            raise _nothing(subject.kind, name)
        project = wanted or self.caller.usual_project
        needed = self.operation.allowed.project
        if self._may_make(needed, project):
            return project
        own = self.caller.own_projects
        has = ", ".join(f"{name} ({self.caller.role_in(name)})" for name in own)
        if not wanted and len(own) > 1:
            raise InvalidRequest(
                f"say which project {subject.kind} {name} belongs to, by `project` (--project NAME, or"
                f" MENDFLOW_PROJECT): {self.caller.name!r} is in {has}",
                field=PROJECT,
            )
        raise Forbidden(
            f"{self.caller.name!r} may make nothing in project {project}: that takes the role {needed or 'admin'}"
            f" there; {f'it is in {has}: ' if has else ''}name another project, or ask its administrator",
            project=project,
        )

    def _may_make(self, needed: ProjectRole | None, project: str) -> bool:
        """Who acts for the whole installation, as engines do, makes things of its own where its token says, or in the
        default project."""
        caller = self.caller
        if caller.is_admin:
            return True
        if self._is_served_anyway() and (project == DEFAULT_PROJECT or project in caller.projects):
            return True
        return needed is not None and caller.may(needed, project)

    def _is_served_anyway(self) -> bool:
        """Pilots and engines act for all projects; each engine for its own cases, as the registry of engines holds."""
        return self.caller.is_admin or self.operation.allowed.allow_without_project(self.caller)

    # For the checks of single operations

    async def demand_seen(self, kind: str, name: str) -> str:
        """The project of something else that the request names, if the caller may look at it."""
        return await self.demand_role("viewer", kind, name)

    async def demand_role(self, role: ProjectRole, kind: str, name: str) -> str:
        found = await self.domain.project_lookup.find(kind, name)
        if found is None:
            raise _nothing(kind, name)
        self.demand(role, found, kind, name)
        return found

    def demand_viewer(self, project: str | None, kind: str, name: str) -> None:
        """Refused, as what is not there, unless the caller can look into the project itself, also if it may ask for
        other reasons."""
        if project is None or not (project == OF_ALL or self.caller.may("viewer", project)):
            raise _nothing(kind, name)

    def refuse(self, kind: str, name: str) -> None:
        """As what is not there."""
        raise _nothing(kind, name)

    def demand(self, role: ProjectRole | None, project: str, kind: str, name: str, *, is_name: bool = False) -> None:
        """Refused if the caller has not this role in the project. What it may not even see is not there, unless it
        wants the name for itself: then it has to hear that it is taken."""
        caller = self.caller
        if caller.is_admin or self._is_served_anyway():
            return
        if self.operation.allowed.own_task and caller.may("viewer", project):
            return  # the task's own role decides
        if project == OF_ALL:
            if role == "viewer":
                return
            raise Forbidden(f"{kind} {name} belongs to the whole installation; only its administrators change it")
        if role is not None and caller.may(role, project):
            return
        if caller.may("viewer", project):
            has = caller.role_in(project)
            raise Forbidden(
                f"{caller.name!r} is {has} in project {project}, and this takes the role {role or 'admin'} there",
                project=project,
            )
        if is_name:
            raise Forbidden(f"the name {name!r:.100} belongs to another project; take another")
        raise _nothing(kind, name)


_KINDS: Final = {"rule draft": "rules"}


def _nothing(kind: str, name: str) -> NotFound:
    """The same words for what is not there, and for what the caller may not see."""
    what = "case, job, item, pilot or schedule" if kind == "anything" else kind
    return NotFound(f"there is no {what} {name!r:.100} in your projects; the list of them shows which there are")
