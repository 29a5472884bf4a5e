"""Sites: where pilots are submitted to, how many there may be, and what became of each that was.

Everything about a site is one document: its settings, what it has spent of its hourly budget, and every pilot that was
submitted and is not over. A pilot to be submitted stands there under a name of its own before any batch system hears of
it, and the name is all it is known by. Whatever is decided about a site is decided by writing this document at the
version that was read, so several servers decide as one."""

import re
from enum import StrEnum
from typing import Literal

import msgspec

from mendflow.core.model.checks import PilotChecks
from mendflow.core.model.data import Sharing
from mendflow.core.model.ids import Instant
from mendflow.core.model.sync import Capacity
from mendflow.core.model.views import View

BatchKind = Literal["local", "slurm", "lsf", "pbs", "htcondor"]
Purpose = Literal["jobs", "ready"]
"""What a pilot was submitted for: jobs that wait, or to be ready when some come. One for jobs leaves when none come."""

HOUR_MS = 3_600_000


class BatchSettings(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """How to speak to a site's batch system. `wall_ms` is how long a pilot may stay; 0: as long as it likes. `options`
    are the batch system's own, by name, and `environment` is for its commands and for the pilots; a value `env:NAME` is
    taken from the server's environment, so that no secret stands here. `folder` is where scripts, logs and the pilots'
    token go: the machines where pilots run must see it. Without it they go into the server's data folder. `commands` is
    where the batch system's commands are, if not on the PATH. A command that takes longer than `timeout_ms` is given
    up. `host` names the machine whose server speaks to the batch system, where not every server can."""

    kind: BatchKind = "local"
    queue: str = ""
    account: str = ""
    reservation: str = ""
    wall_ms: int = 0
    options: dict[str, str] = {}
    environment: dict[str, str] = {}
    folder: str = ""
    commands: str = ""
    timeout_ms: int = 60_000
    host: str = ""


class PilotSettings(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What each pilot of a site is given: what is asked of the batch system for it, and what it is started with. Zero
    and nothing mean: not said. `work` is its folder, which may name variables such as $TMPDIR; without it, it has one
    below the site's. `before` are lines for the shell before it starts. `servers` are the addresses at which it reaches
    servers, where these are not those that servers give themselves."""

    slots: int = 1
    cpus: int = 1
    memory_bytes: int = 0
    disk_bytes: int = 0
    gpus: int = 0
    idle_exit_ms: int = 600_000
    away_exit_ms: int = 600_000
    grace_ms: int = 5_000
    work: str = ""
    python: str = ""
    before: str = ""
    servers: tuple[str, ...] = ()
    storage: str = ""
    share: Sharing | None = None
    cache_bytes: int = 0
    cache_policy: str = ""
    min_free_bytes: int = 0
    checks: PilotChecks = msgspec.field(default_factory=PilotChecks)


class Site(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """There are never more than `max_pilots`, never fewer than `min_pilots`, and `min_idle` of them are without a job
    where that can be had. No more than `submissions_per_hour` are submitted, whatever happens to them. After
    `failures_max` failures with no pilot that worked in between, the site is paused. A submission that the batch system
    does not know for `lost_ms` is lost; a pilot that was started and not heard for `start_ms` will not come."""

    name: str
    min_pilots: int = 0
    max_pilots: int = 10
    min_idle: int = 0
    submissions_per_hour: int = 60
    failures_max: int = 5
    lost_ms: int = 60_000
    start_ms: int = 600_000
    batch: BatchSettings = msgspec.field(default_factory=BatchSettings)
    pilots: PilotSettings = msgspec.field(default_factory=PilotSettings)


PILOTS_MAX = 10_000
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}")


def site_flaw(site: Site) -> str:
    """What nobody can mean, as a sentence; nothing if all is well."""
    if not _NAME.fullmatch(site.name):
        return f"{site.name!r} is no name for a site: use up to 40 letters, digits, and _ . -"
    numbers = {"max_pilots": site.max_pilots, "submissions_per_hour": site.submissions_per_hour}
    numbers |= {"failures_max": site.failures_max, "slots": site.pilots.slots, "cpus": site.pilots.cpus}
    numbers |= {"timeout": site.batch.timeout_ms, "lost": site.lost_ms, "start": site.start_ms}
    if small := [word for word, number in numbers.items() if number < 1]:
        return f"{small[0]} must be at least 1"
    if site.max_pilots > PILOTS_MAX or site.submissions_per_hour > PILOTS_MAX:
        return f"a site has at most {PILOTS_MAX} pilots, and as many submissions an hour"
    if not 0 <= site.min_pilots <= site.max_pilots or not 0 <= site.min_idle <= site.max_pilots:
        return "min_pilots and min_idle are between 0 and max_pilots"
    least = min(site.batch.wall_ms, site.pilots.memory_bytes, site.pilots.disk_bytes, site.pilots.gpus)
    if min(least, site.pilots.idle_exit_ms, site.pilots.away_exit_ms, site.pilots.cache_bytes) < 0:
        return "no time and no size is less than 0"
    if site.batch.kind == "lsf" and not site.batch.wall_ms:
        return "LSF wants to know how long a pilot may stay: say `wall`"
    if site.batch.folder and not site.batch.folder.startswith("/"):
        return f"the folder {site.batch.folder!r} must be an absolute path, the same on all machines of the site"
    texts = [site.batch.queue, site.batch.account, site.batch.reservation, *site.batch.options.values()]
    if any(not text.isprintable() for text in (*texts, *site.batch.options)):
        return "an option of a batch system is one line of text"
    return ""


class SubmissionState(StrEnum):
    PLANNED = "planned"  # written down; whether the batch system took it is not known
    SUBMITTED = "submitted"  # it said that it did
    QUEUED = "queued"  # it was seen there, by its name
    RUNNING = "running"  # and runs, as the batch system says
    WORKING = "working"  # the pilot itself was heard


class PilotSubmission(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A pilot on its way, or at work. `native` is what the batch system calls it, for people to see: nothing is decided
    by it. `since` is when it came into this state. `missed_at` is when the batch system first did not know the name."""

    name: str
    purpose: Purpose
    state: SubmissionState = SubmissionState.PLANNED
    planned_at: Instant
    since: Instant
    by: str  # the server that submits it
    native: str = ""
    pilot: str = ""
    missed_at: Instant = 0
    cancelled_at: Instant = 0

    @property
    def inactive(self) -> bool:
        return self.state is not SubmissionState.WORKING


SubmissionEndKind = Literal["left", "gone", "unfit", "rejected", "lost", "ended", "silent", "withdrawn"]
"""How it was over: it left in good order; it was heard and then no more; it could not work there; the batch system
would not have it; it forgot it; it ended before the pilot was heard; it ran and the pilot was not heard; it was taken
back."""

FAILED_ENDS: frozenset[SubmissionEndKind] = frozenset({"unfit", "rejected", "lost", "ended", "silent"})


class SubmissionEnd(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    name: str
    how: SubmissionEndKind
    at: Instant
    why: str = ""
    native: str = ""
    pilot: str = ""


class PilotOffer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a pilot had when it came, where, and how long it would stay; 0: without end."""

    at: Instant
    capacity: Capacity
    host: str = ""
    ttl_ms: int = 0


class PauseRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    at: Instant
    why: str
    by: str = ""  # who paused it; empty: its own failures did


class SiteDocument(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`spent` are the moments of the last hour's submissions. `failures` count since a pilot last worked; after one,
    the next submission waits until `not_before`. `unheard_since` is since when the batch system does not answer, and
    `trouble` what it said last. `reasons` are why the last look decided as it did. `offered` is what the last pilots
    had that came: a job that none of them could have taken brings no more."""

    site: Site
    made_at: Instant = 0
    made_by: str = ""
    paused: PauseRecord | None = None
    removed: bool = False  # nothing more is submitted, and it goes with its last pilot
    emptied: bool = False  # its pilots are ended, whatever they do
    mark: str = ""  # in the names of its pilots: sets them apart from those of another site of the same name
    serial: int = 0  # in their names, too
    spent: tuple[Instant, ...] = ()
    failures: int = 0
    failed_at: Instant = 0
    not_before: Instant = 0
    open: dict[str, PilotSubmission] = {}
    endings: tuple[SubmissionEnd, ...] = ()  # the newest last
    unheard_since: Instant = 0
    trouble: str = ""
    reasons: tuple[str, ...] = ()
    offered: tuple[PilotOffer, ...] = ()  # the newest last


class SiteView(View, frozen=True):
    """A site as people see it. `inactive` are submitted and not heard yet, `idle` have no job, `busy` have one.
    `left_this_hour` is how many more may be submitted now. `warnings` are what its settings name and what is not there;
    they are looked for when the site is put, and when it is asked for by its name."""

    site: Site
    state: Literal["active", "paused", "removed"]
    inactive: int
    idle: int
    busy: int
    left_this_hour: int
    failures: int = 0
    paused: PauseRecord | None = None
    trouble: str = ""
    warnings: list[str] = []
    reasons: list[str] = []
    submissions: list[PilotSubmission] = []
    endings: list[SubmissionEnd] = []
    made_at: Instant = 0
    made_by: str = ""


class SubmitAccepted(msgspec.Struct, frozen=True):
    """The batch system took it, and calls it so. It may forget it, and call another so."""

    native: str


class SubmitRejected(msgspec.Struct, frozen=True):
    """It certainly did not take it."""

    why: str


class SubmitUncertain(msgspec.Struct, frozen=True):
    """It did not answer, or nothing that can be read: it may have taken it."""

    why: str


class SubmitSkipped(msgspec.Struct, frozen=True):
    """It was not asked, because of what it said before."""


SubmitResult = SubmitAccepted | SubmitRejected | SubmitUncertain | SubmitSkipped


class BatchJobStatus(msgspec.Struct, frozen=True):
    """What a batch system has by a name. `why` is its own word for it, or the last that the pilot wrote."""

    state: Literal["queued", "running", "ended"]
    native: str = ""
    why: str = ""


class BatchSystemUnavailable(Exception):
    """A batch system did not answer, or nothing that can be read: what it has is not known."""
