"""Views of learning: proposals with their evidence, the report of what failures cost, and who decides what is adopted.

A proposal is a rule that nobody has made yet. It is never in force before somebody has adopted it, unless the
administrator has said so for its kind."""

from typing import Annotated, Final, Literal

from msgspec import Meta, field

from mendflow.core.model.flow import Flow
from mendflow.core.model.ids import Instant
from mendflow.core.model.repair import ExceptionType
from mendflow.core.model.values import Value
from mendflow.core.model.views import View

ProposalKind = Literal["repair", "by-hand", "stop", "retire", "avoid", "wait"]
"""repair: nobody took up a group of failures. by-hand: a person has made the same repair again and again. stop: a rule
does not help against one cause. retire: a rule does not help at all. avoid: a host, a site or a source fails more than
others. wait: a wait is too short, or too long."""
PROPOSAL_KINDS: Final[tuple[ProposalKind, ...]] = ("repair", "by-hand", "stop", "retire", "avoid", "wait")

ProposalState = Literal["open", "on-trial", "in-force", "dismissed", "retired", "outdated"]
"""on-trial: adopted; its rule is evaluated and does nothing. in-force: its rule decides. retired: its rule was taken
out of use since. outdated: what it was for is handled otherwise by now."""

AdoptionPolicy = Literal["ask", "on-trial", "in-force"]
"""What is done with a new proposal of a kind: a person is asked, or it is adopted by itself."""


class Rate(View, frozen=True):
    """How often something helped. `low` and `high` bound the true rate with 95 % confidence."""

    helped: int
    tried: int
    mean: float
    low: float
    high: float


class RepairRate(View, frozen=True):
    """What came of one exlet. `among` says where: the same cause, or all failures of a category."""

    exlet: str
    among: str
    rate: Rate


class ProposalEvidence(View, frozen=True):
    """Why a rule is proposed. `caught` of `of` past failures that nothing helped it would have taken up. `spoilt` are
    failures that another repair has cured and that it would have taken from that. `breaks` says which cornerstone keeps
    it from being adopted."""

    failures: int
    cases: int
    first_at: Instant
    last_at: Instant
    flows: list[str]
    caught: int = 0
    of: int = 0
    caught_ids: list[str] = []
    spoilt: int = 0
    spoilt_ids: list[str] = []
    similar: list[RepairRate] = []
    sure: Rate | None = None
    breaks: str = ""


class ProposalTrial(View, frozen=True):
    """A proposal on trial beside what was done. `agreed`: the same exlet was carried out, and it helped. `otherwise`:
    another exlet helped; `otherwise_ids` are those decisions, the newest last."""

    fired: int = 0
    agreed: int = 0
    otherwise: int = 0
    otherwise_ids: list[str] = []


class Proposal(View, frozen=True):
    """A proposed rule. `decision` is the failure that becomes its cornerstone; `rule` is its number once it is adopted,
    or the rule that it would retire. `flow` is the exlet, if the rule set does not have it. `closed_failures` is how
    many failures of the cause there were when it was dismissed, or its rule retired; `again` says that the same was
    proposed before, and what has changed since."""

    id: str
    kind: ProposalKind
    state: ProposalState
    at: Instant
    sentence: str
    rules: str
    type: ExceptionType
    task: str
    condition: str
    exlet: str
    evidence: ProposalEvidence
    group: str = ""
    message: str = ""
    rule: int | None = None
    flow: Flow | None = None
    decision: str = ""
    cornerstone: dict[str, Value] = {}
    trial: ProposalTrial = field(default_factory=ProposalTrial)
    promote_after: int = 0
    adopted_by: str = ""
    adopted_at: Instant = 0
    version: int = 0
    why: str = ""
    dismissed_by: str = ""
    closed_failures: int = 0
    again: str = ""
    changed_at: Instant = 0


class AdoptionRequest(View, frozen=True, forbid_unknown_fields=True):
    """How a proposal is adopted. Its rule is on trial first, unless it is to be `in_force` at once. After
    `promote_after` decisions that agree it is put in force by itself; 0: never; None: as the settings say."""

    in_force: bool = False
    promote_after: Annotated[int, Meta(ge=0, le=1_000_000)] | None = None
    note: str = ""


class DismissalRequest(View, frozen=True, forbid_unknown_fields=True):
    """Why a proposal is dismissed. It is remembered, and the same is not proposed again unless failures of the cause
    have become clearly more."""

    why: Annotated[str, Meta(min_length=1, max_length=2_000)]


class LearningSettings(View, frozen=True, forbid_unknown_fields=True):
    """What the administrator decides about learning. `adopt` has, by kind, what is done with new proposals; a kind that
    is not named waits for a person. `failures_min` failures are needed before a repair is proposed, `by_hand_min`
    repairs by hand, `tries_min` repairs before a rule, a host or a wait is judged."""

    adopt: dict[ProposalKind, AdoptionPolicy] = {}
    promote_after: Annotated[int, Meta(ge=0, le=1_000_000)] = 0
    failures_min: Annotated[int, Meta(ge=1, le=1_000_000)] = 3
    by_hand_min: Annotated[int, Meta(ge=1, le=1_000_000)] = 2
    tries_min: Annotated[int, Meta(ge=2, le=1_000_000)] = 5


class RecountView(View, frozen=True):
    """How many decisions and jobs of the store were counted."""

    decisions: int
    jobs: int


class LostTime(View, frozen=True):
    """What was lost to one cause in the jobs of one flow. GB hours are memory that was asked for, times time."""

    flow: str
    loss: Literal["failed attempts", "over-asking", "waits"]
    cause: str
    count: int
    hours: float
    gb_hours: float


class SavedTime(View, frozen=True):
    """What an adopted proposal has done since. `hours` is what failures of this cause had cost on average before, times
    those that its rule has cured."""

    proposal: str
    sentence: str
    since: Instant
    fired: int
    cured: int
    hours: float


class LearningReport(View, frozen=True):
    """What failures, over-asking and waits have cost, and what adopted proposals have saved. `useful_hours` and
    `useful_gb_hours` are those of attempts that completed."""

    since: Instant
    jobs: int
    attempts: int
    useful_hours: float
    useful_gb_hours: float
    lost: list[LostTime]
    saved: list[SavedTime]
