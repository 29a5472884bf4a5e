"""What is pruned: which cases, by which rules, and what became of them."""

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from mendflow.core.model.ids import CaseId, Instant
from mendflow.core.model.parameters import Count
from mendflow.core.model.views import View

EndState = Literal["completed", "failed", "cancelled"]
"""How a case has ended."""
RuleName = Annotated[str, Meta(min_length=1, max_length=100, description="A plain name.")]
GRACE_MS: Final = 3_600_000
USE_NOTED_EVERY_MS: Final = 150_000
"""So often it is noted that a stored file was asked for: what is noted may be so much older than the last use."""
GRACE_MIN_MS: Final = 2 * USE_NOTED_EVERY_MS
LISTED_MAX: Final = 100
"""So many cases are listed by name; the others are counted."""


class SweptFiles(msgspec.Struct, frozen=True, kw_only=True):
    """What became of stored files that were to be removed. `in_use`: they were stored or asked for too recently."""

    removed: int = 0
    bytes: int = 0
    in_use: list[str] = []


class PruneRule(View, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Which cases that are over go. A case goes if everything that is given here says so: `flow` and `states` say which
    cases are meant; `older_than_ms` that it ended so long ago; `keep` that it is not among the newest so many of its
    flow; `max_bytes` that it is one of the oldest, without which all cases that are meant need more."""

    flow: str = ""
    states: list[EndState] = []
    older_than_ms: Count = 0
    keep: Count | None = None
    max_bytes: Count | None = None


class RetentionRule(PruneRule, frozen=True, kw_only=True):
    """A rule that servers apply once an hour. A case goes if one of the rules says so."""

    name: RuleName


class RetentionRuleView(View, frozen=True):
    rule: RetentionRule
    set_at: Instant
    set_by: str = ""


class PruneRequest(View, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """`rules`: what goes; a case goes if one of them says so. `cases` go whatever the rules say. `dry_run`: nothing
    goes, and the answer says what would. `grace_ms`: a stored file that was stored or asked for so recently stays until
    the next time, since whoever asked may be about to refer to it; at least five minutes, because uses are noted only
    every few minutes."""

    rules: Annotated[list[PruneRule], Meta(max_length=100)] = []
    cases: Annotated[list[CaseId], Meta(max_length=1_000)] = []
    dry_run: bool = False
    grace_ms: Count = GRACE_MS


class PrunedCase(View, frozen=True):
    """A case that goes, with the cases that it called. `bytes` is what its documents, its journals and its files
    take; files that others refer to are not counted."""

    case: CaseId
    flow: str
    status: str
    ended_at: Instant
    bytes: int
    reason: str


class SparedCase(View, frozen=True):
    """A case that the rules would let go, and why it stays."""

    case: CaseId
    reason: str


class PruneView(View, frozen=True):
    """A run of `prune`. `cases`, `files` and `bytes` are what went, or would go; `later_files` went not yet, because
    they were asked for a short while ago. The lists have the first of them."""

    id: str
    state: Literal["running", "done", "failed"] = "running"
    dry_run: bool = False
    by: str = ""
    server: str = ""
    started_at: Instant = 0
    renewed_at: Instant = 0
    ended_at: Instant = 0
    cases: int = 0
    documents: int = 0
    files: int = 0
    bytes: int = 0
    later_files: int = 0
    spared: int = 0
    pruned_cases: list[PrunedCase] = []
    spared_cases: list[SparedCase] = []
    problem: str = ""
