"""Named limits: how many jobs may use something at once, over all cases and servers, such as the licences of a program.
An administrator sets the count of each; a job names those that it uses, and how much of each."""

from typing import Final

import msgspec

from mendflow.core.model.ids import Instant, JobId
from mendflow.core.model.principals import DEFAULT_PROJECT

NamedLimits = tuple[tuple[str, int], ...]
"""What a job uses of named limits while it runs: the name of each and how much, sorted by name."""

NAME_CHARS_MAX: Final = 100
COUNT_MAX: Final = 1_000_000_000


def limit_text(name: str, amount: int) -> str:
    """What is used of a limit: `licence-x`, or `licence-x (3)`."""
    return name if amount == 1 else f"{name} ({amount:,})"


class LimitHold(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt of a job uses so much of a limit: the one with this fence, or an earlier one. `server` has granted it,
    under a lease of this length."""

    amount: int
    fence: int
    server: str
    since: Instant
    lease_ms: int


class LimitDemand(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs of one server wait for a limit, the first since then; `at` is when the server said so."""

    jobs: int
    since: Instant
    at: Instant


class LimitDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A limit in the store. `count` is None while nobody has set it: then no job that uses it is started. What uses it
    stands in the same document, so that both change together or not at all. `freed_at` is when some of it was last
    given back."""

    name: str
    project: str = DEFAULT_PROJECT
    count: int | None = None
    set_by: str = ""
    set_at: Instant = 0
    freed_at: Instant = 0
    holds: dict[JobId, LimitHold] = {}
    waiting: dict[str, LimitDemand] = {}

    @property
    def used(self) -> int:
        return sum(hold.amount for hold in self.holds.values())

    @property
    def free(self) -> int:
        """How much may still be taken; below zero if the count was lowered while jobs run."""
        return (self.count or 0) - self.used

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to remember of it."""
        return self.count is None and not self.holds and not self.waiting


class LimitHolderView(msgspec.Struct, frozen=True, kw_only=True):
    """A job that uses some of a limit, and since when."""

    job: JobId
    amount: int
    since: Instant


class LimitView(msgspec.Struct, frozen=True, kw_only=True):
    """A named limit as people see it. `count` is null if nobody has set it: jobs that use it wait. `waiting` is how
    many jobs of all servers wait for it."""

    name: str
    count: int | None
    used: int
    waiting: int
    project: str = DEFAULT_PROJECT
    set_by: str = ""
    set_at: Instant = 0
    jobs: list[LimitHolderView] = []


class LimitCount(msgspec.Struct, frozen=True):
    """The count that an administrator sets."""

    count: int


def limit_name_flaw(name: str) -> str:
    """What is wrong with the name of a limit; empty if nothing is."""
    usable = name.isascii() and all(char.isalnum() or char in "_-." for char in name) and name[:1].isalnum()
    if not usable or len(name) > NAME_CHARS_MAX:
        return f"`{name:.100}` is no name of a limit: use letters, digits, _, - and ."
    return ""


def limit_count_flaw(count: int) -> str:
    """What is wrong with the count of a limit."""
    return "" if 0 <= count <= COUNT_MAX else f"the count of a limit is a whole number, 0 or more, not {count}"


def limit_amount_flaw(name: str, amount: object) -> str:
    """What is wrong with how much of a limit a job uses."""
    if isinstance(amount, bool) or not isinstance(amount, int) or not 0 <= amount <= COUNT_MAX:
        return f"limit `{name}`: a job uses a whole number of it, such as 1, not {amount!r:.50}"
    return ""
