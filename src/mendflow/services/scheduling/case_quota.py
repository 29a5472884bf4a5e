"""The quotas of cases: what the trees of cases hold of them.

A tree holds as much as it has live cases, under the id of its first case: a flow that calls thousands is one entry, and
those that begin at once are one write. What a killed server has left there is set right by who takes over the tree."""

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec.structs import replace

from mendflow.core.model.ids import CaseId, Instant, JobId
from mendflow.core.model.named_limits import LimitDocument
from mendflow.core.model.projects import quota_name, quota_of
from mendflow.core.scheduling.limit_decisions import Grantor
from mendflow.services.base.case_trees import CaseTrees
from mendflow.services.base.cluster import first_case_of
from mendflow.services.scheduling.quota_holds import hold_of

CASE_FENCE: Final = 1


def with_room(
    document: LimitDocument, tree: CaseId, *, least: int, most: int, grantor: Grantor, now: Instant
) -> LimitDocument:
    """The quota of which a tree holds `most` from now on, or less if there is no room; at least `least`, or as much as
    before. What it holds already it keeps."""
    if document.count is None:
        return document
    held = document.holds.get(JobId(tree))
    before = held.amount if held is not None else 0
    wanted = min(most, before + max(0, document.free))
    return document if before >= least or wanted < least else with_trees(document, {tree: wanted}, grantor, now)


def holds_enough(document: LimitDocument, tree: CaseId, cases: int) -> bool:
    held = document.holds.get(JobId(tree))
    return document.count is None or (held is not None and held.amount >= cases)


def with_trees(document: LimitDocument, trees: Mapping[CaseId, int], grantor: Grantor, now: Instant) -> LimitDocument:
    """The quota with what these trees have, however much that is."""
    holds, freed_at = dict(document.holds), document.freed_at
    for tree, cases in trees.items():
        held = holds.get(JobId(tree))
        before = held.amount if held is not None else 0
        if cases == before:
            continue
        if cases < before:
            freed_at = now
        if not cases:
            del holds[JobId(tree)]
        else:
            since = held.since if held is not None else now
            holds[JobId(tree)] = hold_of(grantor, cases, CASE_FENCE, since)
    return replace(document, holds=holds, freed_at=freed_at) if holds != document.holds else document


class EndedCases:
    """Cases that are over, or did not begin, and whose trees still hold something for them."""

    def __init__(self, live: CaseTrees) -> None:
        self._live = live
        self._projects: dict[CaseId, str] = {}

    def __bool__(self) -> bool:
        return bool(self._projects)

    def add(self, case: CaseId, project: str) -> None:
        self._projects[case] = project

    def trees(self) -> dict[str, dict[CaseId, int]]:
        """By quota: what the trees of these cases have by now, without those that are about to begin: they are not
        admitted yet. A case stays in memory while jobs are under way that it does not wait for, and counts."""
        found: dict[str, dict[CaseId, int]] = {}
        for case, project in self._projects.items():
            found.setdefault(quota_name(project, "cases"), {})[first_case_of(case)] = self._live.begun_in_tree(case)
        return found

    def written(self, quota: str, trees: Iterable[CaseId]) -> None:
        """What these trees have is in the store."""
        named, done = quota_of(quota), set(trees)
        for case, project in list(self._projects.items()):
            if named == (project, "cases") and first_case_of(case) in done and case not in self._live:
                del self._projects[case]
