"""Applications of rules to groups of failures, while they run and after: what is told of them, and to whom.

Everything is counted in failures, by the ids of their decisions, whether they waited or had ended their cases; only
`cases` are cases. A group may have very many failures: of applications that are over only so many ids are kept."""

from collections import Counter
from collections.abc import Collection, Iterable
from typing import Final

import msgspec

from mendflow.core.model.ids import CaseId, Instant
from mendflow.core.model.principals import EVERYTHING, Sight
from mendflow.core.model.repair_views import ApplyResult
from mendflow.core.model.rule_views import ApplyProgress, LeftReason

RUNS_KEPT: Final = 100
IDS_KEPT: Final = 20_000
"""So many ids are kept of all applications that are over but the last: a few megabytes."""


class ApplyRun(msgspec.Struct, kw_only=True):
    """One application of rules to a group. `projects` are those of the group's failures, `project_of` are those of
    what was done or left: a group has failures of several projects, and who sees some of them is told of these
    alone. `total` and `done` count by project. `task_roles` are the roles whose user tasks it may end; None: any.
    `sight` has the projects whose cases it may change."""

    group: str
    by: str
    started_at: Instant
    projects: set[str]
    application: str = ""
    project_of: dict[str, str] = {}
    total: Counter[str] = msgspec.field(default_factory=Counter)
    done: Counter[str] = msgspec.field(default_factory=Counter)
    running: bool = True
    taken_up: list[str] = []
    left: dict[str, LeftReason] = {}
    cases: list[str] = []
    refused: dict[str, str] = {}
    stops: list[Sight] = []
    task_roles: Collection[str] | None = None
    sight: Sight = EVERYTHING
    ended_at: Instant = 0

    @property
    def size(self) -> int:
        return len(self.taken_up) + len(self.left) + len(self.cases) + len(self.refused)

    def is_stopped(self, project: str) -> bool:
        return any(each.sees(project) for each in self.stops)

    def is_seen(self, sight: Sight) -> bool:
        return sight.projects is None or any(map(sight.sees, self.projects))

    # What was done, of failures of one project

    def add_taken_up(self, failures: Iterable[str], project: str) -> None:
        self.taken_up += self._noted(failures, project)

    def add_left(self, failures: Iterable[str], project: str, reason: LeftReason) -> None:
        self.left |= dict.fromkeys(self._noted(failures, project), reason)

    def add_refused(self, failures: Iterable[str], project: str, reason: str) -> None:
        self.refused |= dict.fromkeys(self._noted(failures, project), reason)

    def add_case(self, case: CaseId, project: str) -> None:
        self.cases += self._noted([case], project)

    def _noted(self, ids: Iterable[str], project: str) -> list[str]:
        noted = list(ids)
        self.project_of |= dict.fromkeys(noted, project)
        return noted

    def result(self) -> ApplyResult:
        return ApplyResult(
            group=self.group,
            taken_up=self.taken_up,
            left=[*self.left],
            why_left=self.left,
            cases=self.cases,
            refused=self.refused,
        )

    def progress_in(self, sight: Sight) -> ApplyProgress:
        def of(ids: Iterable[str]) -> list[str]:
            return [id for id in ids if sight.projects is None or sight.sees(self.project_of[id])]

        def number(counted: Counter[str]) -> int:
            return sum(count for project, count in counted.items() if sight.sees(project))

        return ApplyProgress(
            group=self.group,
            by=self.by,
            application=self.application,
            started_at=self.started_at,
            running=self.running,
            total=number(self.total),
            done=number(self.done),
            taken_up=of(self.taken_up),
            left=of(self.left),
            why_left={id: self.left[id] for id in of(self.left)},
            cases=of(self.cases),
            refused={id: self.refused[id] for id in of(self.refused)},
            stopped=any(self.is_stopped(project) for project in self.projects if sight.sees(project)),
            ended_at=self.ended_at,
        )


class ApplyRuns:
    """Those that run, and the last that are over, the newest last."""

    def __init__(self) -> None:
        self._runs: list[ApplyRun] = []

    def begin(self, run: ApplyRun) -> None:
        self._runs.append(run)

    def end(self, run: ApplyRun, now: Instant) -> None:
        """What has run stays for who asks what came of it; the oldest of those that are over go."""
        run.running, run.ended_at = False, now
        over = [each for each in self._runs if not each.running and each is not run]
        ids = sum(each.size for each in over)
        while over and (len(over) >= RUNS_KEPT or ids > IDS_KEPT):
            oldest = over.pop(0)
            ids -= oldest.size
            self._runs.remove(oldest)

    def of(self, group: str, sight: Sight) -> list[ApplyRun]:
        """Those to failures of a group that are in sight, the newest last."""
        return [run for run in self._runs if run.group == group and run.is_seen(sight)]
