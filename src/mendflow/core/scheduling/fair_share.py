"""Fair share: whose waiting jobs go first, by what projects and their users have used and what they are entitled to.

Usage is counted in CPUs times time, and what was used counts half after each half-life, as in Slurm. The project with
the least usage for its weight goes first; among the users of a project that share, the user with the least for theirs;
and among the jobs of one of these the queue's own order holds. A job counts from the moment of its grant as if it had
run for a little while already: so free slots are divided by the weights at once, and not only after the first jobs
have ended."""

import math
from collections.abc import Iterable, Mapping
from heapq import heapify, heappop, heapreplace
from typing import Final

from mendflow.core.model.ids import Instant
from mendflow.core.model.projects import HALF_LIFE_MS, ProjectSettings

ADVANCE_MS: Final = 60_000
"""A job that was just granted counts as if it had run for so long."""

NOTHING_CPU_MS: Final = 50.0
"""What has decayed to less is shown as nothing, and is forgotten."""

_CPUS_MIN: Final = 1e-6  # less is what is left of sums of fractions
_BETWEEN: Final = "\0"
_LN_2: Final = math.log(2)

ShareKey = tuple[float, float]
"""Who has the smaller one goes first: of projects, then of their users."""


class DecayingUsage:
    """CPUs times milliseconds: `cpu_ms` at the time `at`, while `cpus` are in use since then."""

    __slots__ = ("at", "cpu_ms", "cpus")

    def __init__(self, cpu_ms: float = 0.0, at: Instant = 0, cpus: float = 0.0) -> None:
        self.cpu_ms = cpu_ms
        self.at = at
        self.cpus = cpus

    def value(self, now: Instant, half_life_ms: int) -> float:
        """What counts now. What is in use decays while it is used: the integral of both."""
        if now <= self.at:
            return self.cpu_ms
        left = math.exp2((self.at - now) / half_life_ms)
        return self.cpu_ms * left + self.cpus * (half_life_ms / _LN_2) * (1.0 - left)

    def change(self, cpus: float, now: Instant, half_life_ms: int) -> None:
        """From now on so many CPUs more are in use, or fewer."""
        if now > self.at:
            self.cpu_ms = self.value(now, half_life_ms)
            self.at = now
        self.cpus += cpus
        if self.cpus < 0.0:
            self.cpus = 0.0

    def is_nothing(self, now: Instant, half_life_ms: int) -> bool:
        return self.cpus < _CPUS_MIN and self.value(now, half_life_ms) < NOTHING_CPU_MS


Usage = dict[str, dict[str, DecayingUsage]]
"""By project, then by user."""


class UsageTable:
    """Usage of users, and with each project the total of its users."""

    def __init__(self) -> None:
        self.users: Usage = {}
        self.totals: dict[str, DecayingUsage] = {}

    def change(self, project: str, user: str, cpus: float, now: Instant, half_life_ms: int) -> None:
        users = self.users.get(project)
        if users is None:
            users = self.users[project] = {}
            self.totals[project] = DecayingUsage(at=now)
        usage = users.get(user)
        if usage is None:
            usage = users[user] = DecayingUsage(at=now)
        usage.change(cpus, now, half_life_ms)
        self.totals[project].change(cpus, now, half_life_ms)

    def forget(self, now: Instant, half_life_ms: int) -> None:
        """Drop the users of whose usage nothing is left and who use nothing, and the projects without others."""
        for project, users in list(self.users.items()):
            for user in [user for user, usage in users.items() if usage.is_nothing(now, half_life_ms)]:
                del users[user]
            if not users:
                del self.users[project], self.totals[project]

    def add(self, project: str, user: str, usage: DecayingUsage, now: Instant, half_life_ms: int) -> None:
        """Add what somebody else has counted, as of now."""
        self.change(project, user, usage.cpus, now, half_life_ms)
        for mine in (self.users[project][user], self.totals[project]):
            mine.cpu_ms += usage.value(now, half_life_ms)


class FairShares:
    """`own` is what the jobs of this server have used, `others` what those of other servers have, as they last said."""

    def __init__(self, half_life_ms: int = HALF_LIFE_MS) -> None:
        self.half_life_ms = half_life_ms
        self.own = UsageTable()
        self.others = UsageTable()
        self._settings: Mapping[str, ProjectSettings] = {}
        self._sharing: frozenset[str] = frozenset()

    def use_settings(self, settings: Mapping[str, ProjectSettings], half_life_ms: int) -> set[str]:
        """Take these settings; the answer is the projects whose users share from now on, or no longer."""
        before = self._sharing
        self._settings, self.half_life_ms = settings, half_life_ms
        self._sharing = frozenset(name for name, each in settings.items() if each.share_users)
        return set(before ^ self._sharing)

    def account(self, project: str, user: str) -> str:
        """Jobs of one account are in the order of the queue among themselves."""
        return project if project not in self._sharing else f"{project}{_BETWEEN}{user}"

    def use(self, project: str, user: str, cpus: float, now: Instant) -> None:
        """From now on jobs of the user use so many CPUs more, or fewer."""
        self.own.change(project, user, cpus, now, self.half_life_ms)

    def user_usage(self, project: str, user: str, now: Instant) -> DecayingUsage:
        """What a user has used of all servers, as of now."""
        tables = (self.own.users, self.others.users)
        return self._sum((each[project].get(user) for each in tables if project in each), now)

    def project_usage(self, project: str, now: Instant) -> DecayingUsage:
        return self._sum((self.own.totals.get(project), self.others.totals.get(project)), now)

    def users(self, project: str) -> list[str]:
        return sorted({*self.own.users.get(project, ()), *self.others.users.get(project, ())})

    def projects(self) -> set[str]:
        """Those that have used something."""
        return {*self.own.totals, *self.others.totals}

    def weight(self, project: str) -> float:
        settings = self._settings.get(project)
        return settings.weight if settings is not None else 1.0

    def user_weight(self, project: str, user: str) -> float:
        settings = self._settings.get(project)
        return settings.user_weights.get(user, 1.0) if settings is not None else 1.0

    def _sum(self, usages: Iterable[DecayingUsage | None], now: Instant) -> DecayingUsage:
        total = DecayingUsage(at=now)
        for usage in usages:
            if usage is not None:
                total.cpu_ms += usage.value(now, self.half_life_ms)
                total.cpus += usage.cpus
        return total


def project_of_account(account: str) -> str:
    return account.partition(_BETWEEN)[0]


class ShareOrder:
    """The accounts with waiting jobs, in the order of their shares, while jobs of them are taken for one pilot."""

    def __init__(self, shares: FairShares, accounts: Iterable[str], now: Instant) -> None:
        self._shares = shares
        self._now = now
        self._used: dict[str, DecayingUsage] = {}  # by project, and by account of a user
        self._heap = [(self._key(account), account) for account in accounts]
        heapify(self._heap)

    def first(self) -> str | None:
        """Whose turn it is; None if nobody is left. Others of a project fall back with it when one of its users is
        charged: their old places are no better than the new ones, and are looked at again when they come up."""
        heap = self._heap
        while heap:
            place, account = heap[0]
            if (by_now := self._key(account)) <= place:
                return account
            heapreplace(heap, (by_now, account))
        return None

    def charge(self, account: str, cpus: float) -> None:
        """A job of the account is about to be granted."""
        for name in {account, account.partition(_BETWEEN)[0]}:
            self._used[name].cpus += cpus

    def drop(self) -> None:
        """Whose turn it is has nothing that fits."""
        heappop(self._heap)

    def _key(self, account: str) -> ShareKey:
        shares = self._shares
        project, is_user, user = account.partition(_BETWEEN)
        total = self._used.get(project)
        if total is None:
            total = self._used[project] = shares.project_usage(project, self._now)
        place = _part(total, shares.weight(project))
        if not is_user:
            return place, 0.0
        usage = self._used.get(account)
        if usage is None:
            usage = self._used[account] = shares.user_usage(project, user, self._now)
        return place, _part(usage, shares.user_weight(project, user))


def _part(usage: DecayingUsage, weight: float) -> float:
    """What counts for each unit of the weight; without a weight one goes last."""
    return (usage.cpu_ms + usage.cpus * ADVANCE_MS) / weight if weight > 0 else math.inf


def entitled(weights: Mapping[str, float]) -> dict[str, float]:
    """The part of everything that each project is entitled to."""
    total = sum(weights.values())
    return {name: weight / total if total else 0.0 for name, weight in weights.items()}
