"""What an administrator sets for a project: its weight in the fair share, and its quotas.

A quota that jobs use while they run, or cases while they live, is kept as a named limit whose name nobody else can
give: so it holds in the same way, over all servers and whatever dies when."""

from typing import Annotated, Final, Literal

import msgspec

from mendflow.core.model.ids import Instant

DAY_MS: Final = 86_400_000
HALF_LIFE_MS: Final = 7 * DAY_MS
HALF_LIFE_MIN_MS: Final = 60_000
HALF_LIFE_MAX_MS: Final = 3650 * DAY_MS
WEIGHT_MAX: Final = 1_000_000
AMOUNT_MAX: Final = 1 << 60
CASES_PER_START: Final = 5_000
"""Live cases that one start may have at once, with all that they call, unless the server's owner says otherwise."""
LIVE_INPUTS_BYTES: Final = 1_000_000_000
"""Memory that the inputs of a project's live cases may take on one server, unless its owner says otherwise."""
MILLI: Final = 1000
"""CPUs of a quota are counted in thousandths."""

QuotaKind = Literal["cases", "waiting-jobs", "running-jobs", "cpus", "memory", "stored-bytes"]
JOB_QUOTAS: Final[tuple[QuotaKind, ...]] = ("cpus", "memory", "running-jobs", "stored-bytes")
"""Quotas that keep jobs from starting."""
HELD_QUOTAS: Final[tuple[QuotaKind, ...]] = ("cases", "cpus", "memory", "running-jobs", "stored-bytes", "waiting-jobs")
_MARK: Final = "project:"

Count = Annotated[int, msgspec.Meta(ge=0, le=AMOUNT_MAX)]
Weight = Annotated[float, msgspec.Meta(ge=0, le=WEIGHT_MAX)]


class Quotas(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """How much a project may have or use at once; what is null is not bounded. `cases` are those that have not ended,
    started by somebody or called by another case, but for those that mend others. `waiting_jobs` are those in the
    queue. `stored_bytes` are those of the files that its cases name. `requests_per_s` are those of its members, about
    it, to all servers."""

    cases: Count | None = None
    waiting_jobs: Count | None = None
    running_jobs: Count | None = None
    cpus: Annotated[float, msgspec.Meta(ge=0, le=1e9)] | None = None
    memory_bytes: Count | None = None
    stored_bytes: Count | None = None
    requests_per_s: Annotated[float, msgspec.Meta(gt=0, le=1e6)] | None = None

    def count_of(self, kind: QuotaKind) -> int | None:
        """The quota as the count of its named limit."""
        if kind == "cpus":
            return None if self.cpus is None else round(self.cpus * MILLI)
        found: int | None = getattr(self, _FIELDS[kind])
        return found


_FIELDS: Final[dict[QuotaKind, str]] = {
    "cases": "cases",
    "waiting-jobs": "waiting_jobs",
    "running-jobs": "running_jobs",
    "memory": "memory_bytes",
    "stored-bytes": "stored_bytes",
}


class ProjectSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is set for a project. Its `weight` is its part of the fair share, relative to those of other projects; with
    0 its jobs run when nobody else wants to. With `share_users` its users share among themselves too, by
    `user_weights`; who is not named there has the weight 1."""

    weight: Weight = 1.0
    share_users: bool = False
    user_weights: dict[str, Weight] = {}
    quotas: Quotas = Quotas()


class ProjectDocument(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a project in the store, but for the counts that stand in its named limits."""

    name: str
    settings: ProjectSettings = ProjectSettings()
    set_by: str = ""
    set_at: Instant = 0


class FairShareSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """After `half_life_ms` what was used counts half."""

    half_life_ms: Annotated[int, msgspec.Meta(ge=HALF_LIFE_MIN_MS, le=HALF_LIFE_MAX_MS)] = HALF_LIFE_MS


class UserUsageView(msgspec.Struct, frozen=True, kw_only=True):
    """What a user of a project has used, in seconds of CPUs, and uses now."""

    user: str
    weight: float
    cpu_s: float
    cpus: float


class ProjectUse(msgspec.Struct, frozen=True, kw_only=True):
    """What a project uses now, over all servers. `cpu_s` are the seconds of CPUs that count in the fair share: those
    longer ago count less. `cpus` are those in use. What has no quota is not counted: it is null."""

    cpu_s: float = 0.0
    cpus: float = 0.0
    cases: int | None = None
    waiting_jobs: int | None = None
    running_jobs: int | None = None
    memory_bytes: int | None = None
    stored_bytes: int | None = None


class ProjectView(msgspec.Struct, frozen=True, kw_only=True):
    """A project: what is set for it, what it uses, and its share. `share` is what its weight entitles it to among the
    projects that have used something or wait, `used_share` the part that it has had of what they all used; both are
    null where the caller sees not all projects. `set_at` is 0 if nobody has set anything."""

    name: str
    settings: ProjectSettings
    used: ProjectUse
    share: float | None = None
    used_share: float | None = None
    users: list[UserUsageView] = []
    set_by: str = ""
    set_at: Instant = 0


def quota_name(project: str, kind: QuotaKind) -> str:
    """The named limit that a quota is kept as. No job and nobody else can name it: a limit's name has no colon."""
    return f"{_MARK}{project}:{kind}"


def is_quota_name(name: str) -> bool:
    return name.startswith(_MARK)


def quota_of(name: str) -> tuple[str, QuotaKind] | None:
    """The project and the kind of a quota's named limit; None if it is another limit."""
    if not is_quota_name(name):
        return None
    project, _, given = name.removeprefix(_MARK).rpartition(":")
    kind = next((each for each in HELD_QUOTAS if each == given), None)
    return (project, kind) if kind is not None else None


def settings_flaw(settings: ProjectSettings) -> tuple[str, str]:
    """The field that is wrong in settings, and what is wrong with it; empty if nothing is."""
    weights = {
        "weight": settings.weight,
        **{f"user_weights.{who}": each for who, each in settings.user_weights.items()},
    }
    for field, weight in weights.items():
        if not 0 <= weight <= WEIGHT_MAX:
            return field, f"{field}: a weight is a number from 0 to {WEIGHT_MAX:,.0f}, not {weight:g}"
    for field in Quotas.__struct_fields__:
        amount = getattr(settings.quotas, field)
        if amount is not None and not 0 <= amount <= AMOUNT_MAX:
            return f"quotas.{field}", f"quotas.{field}: a quota is 0 or more, or null for none, not {amount:g}"
    if settings.quotas.requests_per_s == 0:
        return "quotas.requests_per_s", "quotas.requests_per_s: with 0 nobody could ask; take a token away instead"
    return "", ""


def half_life_flaw(half_life_ms: int) -> str:
    if HALF_LIFE_MIN_MS <= half_life_ms <= HALF_LIFE_MAX_MS:
        return ""
    return f"half_life_ms: a half-life is from a minute to ten years, not {half_life_ms} ms"
