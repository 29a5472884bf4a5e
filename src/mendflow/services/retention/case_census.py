"""Which cases there are, and which of them are over with all that they called.

A group is a case with everything that began with it: the cases that it called, the exlets that mend it. It goes as a
whole, or stays."""

from collections.abc import Iterable

import msgspec

from mendflow.core.model.ids import CaseId, Instant
from mendflow.core.model.principals import DEFAULT_PROJECT
from mendflow.core.model.retention import PruneRule
from mendflow.core.model.views import CASE_END_STATES
from mendflow.core.retention.selection import FinishedCase
from mendflow.services.base.cluster import CASE_KIND, LIVE_STATUSES, first_case_of
from mendflow.services.cases.flow_file_store import id_of
from mendflow.stores.contract import Store

KEYED_MS = 600_000
"""A case that was started under a key stays at least so long after its end: whoever started it may ask for it again by
that key, and would start it twice."""


class CaseSummary(msgspec.Struct):
    """The fields of a case that say whether it may go."""

    id: CaseId
    flow: str
    status: str
    digest: str = ""
    started_at: Instant = 0
    ended_at: Instant = 0
    project: str = DEFAULT_PROJECT
    rerun_of: CaseId | None = None
    stands_for: CaseId | None = None
    key: str = ""
    posted: bool = False
    void: bool | None = None

    @property
    def live(self) -> bool:
        return self.status in LIVE_STATUSES or self.posted


_decode = msgspec.json.Decoder(CaseSummary).decode


class CaseGroup(msgspec.Struct):
    id: CaseId
    root: CaseSummary | None = None
    cases: list[CaseId] = []
    live: bool = False
    flow_files: set[str] = set()  # the versions of flows that its cases run
    rerun_of: set[CaseId] = set()  # of its live cases: what they run again, and take results from

    @property
    def is_over(self) -> bool:
        root = self.root
        return root is not None and not self.live and not root.void and root.status in CASE_END_STATES

    def may_be_asked_for(self, now: Instant) -> bool:
        """Whether whoever started it may still ask for it by its key."""
        root = self.root
        return root is not None and bool(root.key) and now - root.ended_at < KEYED_MS

    def finished(self, bytes: int = 0) -> FinishedCase:
        root = self.root
        assert root is not None
        return FinishedCase(
            id=self.id,
            flow=root.flow,
            status=root.status,
            started_at=root.started_at,
            ended_at=root.ended_at,
            bytes=bytes,
        )


async def all_case_groups(store: Store) -> dict[CaseId, CaseGroup]:
    """Every group of the store, by what is on disk."""
    groups: dict[CaseId, CaseGroup] = {}
    async for found in store.scan(CASE_KIND):
        add(groups, _decode(found.body))
    return groups


def add(groups: dict[CaseId, CaseGroup], case: CaseSummary) -> None:
    group = groups.setdefault(first_case_of(case.id), CaseGroup(first_case_of(case.id)))
    group.cases.append(case.id)
    group.flow_files.add(id_of(case.flow, case.digest))
    if case.id == group.id:
        group.root = case
    if case.live:
        group.live = True
        if case.rerun_of is not None:
            group.rerun_of.add(first_case_of(case.rerun_of))


def needs_sizes(rules: Iterable[PruneRule]) -> bool:
    return any(rule.max_bytes is not None for rule in rules)
