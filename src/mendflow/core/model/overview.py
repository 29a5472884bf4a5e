"""The state of everything at a glance: what runs, what waits and why, what failed in the last day and what was mended.

Counts are of the projects that whoever asks can look into; pilots, sites and alerts are as the lists of them say."""

from typing import Literal

from mendflow.core.model.alerts import AlertView
from mendflow.core.model.ids import Instant
from mendflow.core.model.views import View

HOURS = 24
"""Of so many hours there are counts: the present one is the last."""

WaitingKind = Literal["job", "retry", "user-task", "person"]


class WaitingReason(View, frozen=True):
    """Why so many wait, in words. `sample` is one of them: a job, a user task or a decision. Jobs wait for a pilot, or
    for their next try (`retry`); user tasks and decisions wait for people. Of jobs that wait for a pilot, `samples`
    has one of each lot of like needs, so that all that are counted can be found; of others `where` is the condition
    that finds them. A reason is true of each of them, so it does not say how many are before it."""

    kind: WaitingKind
    reason: str
    jobs: int
    sample: str = ""
    samples: list[str] = []
    where: str = ""


class FailureTrend(View, frozen=True):
    """Failures of one cause in the last day, by the hour. No rule took up the `unhandled`, and nobody has run their
    cases again; of `run_again` somebody has, and the cases of `settled` have completed all the same, or were cancelled.
    `rejected` are decisions of people, who rejected a user task. Of `told` a person was told, and nothing else was
    done."""

    group: str
    type: str
    message: str
    count: int
    waiting: int
    unhandled: int
    last_at: Instant
    per_hour: list[int]
    told: int = 0
    run_again: int = 0
    settled: int = 0
    rejected: int = 0


class RuleRecoveries(View, frozen=True):
    """How often an exlet mended a failure: by a rule, or, where `rules` is empty, because a person chose it. By hand
    with `rules`: a person applied that rule to what waited or had failed. The rule is in the tree of `type` for the
    task `tree`: numbers are per tree."""

    rules: str
    rule: int
    exlet: str
    count: int
    type: str = ""
    tree: str = ""


class Recoveries(View, frozen=True):
    """What was mended by rules, by itself, and apart from that by hand. What a person was only told of is not, nor is
    what has not gone on yet."""

    count: int = 0
    by_rule: list[RuleRecoveries] = []
    count_by_hand: int = 0
    by_hand: list[RuleRecoveries] = []


class PilotTotals(View, frozen=True):
    """`busy` are the slots in which something runs."""

    up: int = 0
    slots: int = 0
    busy: int = 0


class SiteTotals(View, frozen=True):
    """A site, or the pilots that name none. `note` says what is wrong with it."""

    name: str
    state: str = "active"
    pilots: int = 0
    slots: int = 0
    busy: int = 0
    note: str = ""


class CasesPerHour(View, frozen=True):
    started: list[int]
    completed: list[int]
    failed: list[int]


class OverviewView(View, frozen=True):
    """`since` is when the first of the hours began. `cases` are all that somebody started, by status, and so are those
    of `per_hour`; `inner` are the others: those that they called, and those that mend them. `jobs` are those that have
    not ended."""

    since: Instant
    cases: dict[str, int]
    inner: dict[str, int]
    jobs: dict[str, int]
    waiting: list[WaitingReason]
    failures: list[FailureTrend]
    recovered: Recoveries
    pilots: PilotTotals
    sites: list[SiteTotals]
    alerts: list[AlertView]
    per_hour: CasesPerHour
