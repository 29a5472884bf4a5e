"""Sites: where pilots are submitted, how many, and what happened to each.

A site is one document: its settings, the spent part of its hourly budget, and every submitted pilot that has not ended.
A submission is recorded there under a unique name before it goes to the batch system, and only that name identifies it.
Every decision is a write of this document at the version that was read, so several servers decide as one."""

from enum import StrEnum
from typing import Literal

import msgspec

from mendflow.core.model.checks import PilotChecks
from mendflow.core.model.data import Sharing
from mendflow.core.model.ids import Instant
from mendflow.core.model.sync import LOG_SIZE_BYTES_MIN, Capacity
from mendflow.core.model.views import View
from mendflow.lazy import lazy_pattern

BatchKind = Literal["local", "slurm", "lsf", "pbs", "htcondor", "gridengine"]
Purpose = Literal["jobs", "ready"]
"""Why a pilot was submitted: for waiting jobs, or to be ready. One for jobs leaves when there are none."""

HOUR_MS = 3_600_000


class BatchSettings(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """How to use a site's batch system. `wall_ms` is how long a pilot may run; 0: no limit. `options` are the batch
    system's own, by name, and `environment` is for its commands and for the pilots; a value `env:NAME` is taken from
    the server's environment, so that no secret is stored here. `folder` is for scripts, logs and the pilots' token: the
    machines of the pilots must see it. By default it is in the server's data folder. `commands` is where the batch
    system's commands are, if not on the PATH. A command that takes longer than `timeout_ms` is given up. `host` names
    the machine whose server uses the batch system, if not every server can."""

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
    """The settings of each pilot of a site: what is requested from the batch system, and its options. Zero and empty
    mean: not set, but of `log_size` and `keep_failed` zero is a bound, too. `work` is its folder, which may contain
    variables such as $TMPDIR; by default it is below the site's. `before` are shell lines that run before it starts.
    `servers` are the addresses at which it reaches servers, if they differ from the servers' own."""

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
    log_size_bytes: int | None = None
    keep_failed_ms: int | None = None
    keep_failed_size_bytes: int | None = None
    keep_failed_max: int | None = None
    checks: PilotChecks = msgspec.field(default_factory=PilotChecks)


class Site(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """There are at most `max_pilots`, at least `min_pilots`, and if possible `min_idle` of them without a job. At most
    `submissions_per_hour` are submitted, whatever happens to them. After `failures_max` failures in a row the site is
    paused. A submission that the batch system has not known for `lost_ms` is lost; a pilot that was started and not
    heard for `start_ms` is given up."""

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
_NAME = lazy_pattern(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}")


def site_flaw(site: Site) -> str:
    """What is invalid, as a sentence; empty if all is well."""
    if not _NAME.fullmatch(site.name):
        return f"{site.name!r} is not a valid name for a site: use up to 40 letters, digits, and _ . -"
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
        return "no time and no size may be negative"
    kept = (site.pilots.keep_failed_ms, site.pilots.keep_failed_size_bytes, site.pilots.keep_failed_max)
    if any(bound is not None and bound < 0 for bound in kept):
        return "folders of failed attempts cannot be kept for less than no time, nor fewer than none"
    if site.pilots.log_size_bytes is not None and site.pilots.log_size_bytes < LOG_SIZE_BYTES_MIN:
        return f"log_size must be at least {LOG_SIZE_BYTES_MIN} bytes"
    if site.batch.kind == "lsf" and not site.batch.wall_ms:
        return "LSF needs a limit for how long a pilot may run: set `wall`"
    if site.batch.folder and not site.batch.folder.startswith("/"):
        return f"the folder {site.batch.folder!r} must be an absolute path, the same on all machines of the site"
    texts = [site.batch.queue, site.batch.account, site.batch.reservation, *site.batch.options.values()]
    if any(not text.isprintable() for text in (*texts, *site.batch.options)):
        return "an option of a batch system is one line of text"
    return ""


class SubmissionState(StrEnum):
    PLANNED = "planned"  # recorded; whether the batch system accepted it is unknown
    SUBMITTED = "submitted"  # the batch system said that it did
    QUEUED = "queued"  # it was seen there, by its name
    RUNNING = "running"  # it runs, according to the batch system
    WORKING = "working"  # the pilot itself has registered


class PilotSubmission(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A pilot that was submitted, or is working. `native` is the batch system's id, for people only: no decision uses
    it. `since` is when it entered this state. `missed_at` is when the batch system first did not know the name."""

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
"""How it ended: it left in good order; it was heard and then no more; it could not work there; the batch system refused
it; forgot it; ended it before the pilot was heard; ran it and the pilot was not heard; it was withdrawn."""

FAILED_ENDS: frozenset[SubmissionEndKind] = frozenset({"unfit", "rejected", "lost", "ended", "silent"})


class SubmissionEnd(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    name: str
    how: SubmissionEndKind
    at: Instant
    why: str = ""
    native: str = ""
    pilot: str = ""


class PilotOffer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a pilot offered when it registered, where, and how long it would stay; 0: no limit."""

    at: Instant
    capacity: Capacity
    host: str = ""
    ttl_ms: int = 0


class PauseRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    at: Instant
    why: str
    by: str = ""  # who paused it; empty: its own failures did


class SiteDocument(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`spent` are the times of the last hour's submissions. `failures` counts since a pilot last worked; after one, the
    next submission waits until `not_before`. `unheard_since` is since when the batch system does not answer, and
    `trouble` its last message. `reasons` explain the last decision. `offered` is what the last pilots offered: a job
    that none of them could run causes no submission."""

    site: Site
    made_at: Instant = 0
    made_by: str = ""
    paused: PauseRecord | None = None
    removed: bool = False  # nothing more is submitted, and it is removed with its last pilot
    emptied: bool = False  # its pilots are ended, whatever they do
    mark: str = ""  # part of its pilots' names: distinguishes them from those of another site of the same name
    serial: int = 0  # part of their names, too
    key: str = ""  # what the secrets of its pilots are made from; nobody is shown it
    serial_before_key: int = 0  # pilots up to this one were submitted without a secret
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
    `left_this_hour` is how many more may be submitted now. `warnings` name missing things in its settings; they are
    checked when the site is stored, and when it is requested by name."""

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
    """The batch system accepted it, with this id. It may forget it, and reuse the id."""

    native: str


class SubmitRejected(msgspec.Struct, frozen=True):
    """It certainly did not accept it."""

    why: str


class SubmitUncertain(msgspec.Struct, frozen=True):
    """There was no answer, or an unreadable one: it may have accepted it."""

    why: str


class SubmitSkipped(msgspec.Struct, frozen=True):
    """It was not asked, because of an earlier answer."""


SubmitResult = SubmitAccepted | SubmitRejected | SubmitUncertain | SubmitSkipped


class BatchJobStatus(msgspec.Struct, frozen=True):
    """What a batch system has under a name. `why` is its own word, or the pilot's last log line."""

    state: Literal["queued", "running", "ended"]
    native: str = ""
    why: str = ""


class BatchSystemUnavailable(Exception):
    """A batch system did not answer, or unreadably: its jobs are unknown."""
