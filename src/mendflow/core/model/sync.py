"""The exchange between a pilot and a server, in MessagePack.

The pilot sends what it has, what it runs and what ended; the server answers with jobs, a verdict on each report, and
controls. The server holds its answer back until there is something to say, and a newer request of the same pilot
releases the held one. One answer renews all leases of a pilot: the answer to request `serial` promises that nobody else
gets the pilot's recognised attempts until `lease_ms` after that request was *sent*; the server counts from when it
answers, by its own clock, so the lease never ends earlier for the server than for the pilot.

Answers can overtake each other on two connections. So the pilot processes them in the order of serials, drops one that
is older than what it has processed, and reports with `heard` how far it has got: a job assigned in answer `s` that a
request with `heard >= s` does not name was never started, and goes back to the queue at no charge.

If several servers share a store, a pilot talks to one of them, its *front*, which forwards the same request to the
servers that own the attempts (`front` then names the forwarding server). An answer lists as `unclaimed` the attempts
that it promises nothing for: another server owns them and could not be asked. A pilot with unclaimed attempts obeys the
rest, but does not renew its lease."""

import hashlib
from enum import StrEnum
from typing import Annotated

import msgspec

from mendflow.core.model.data import CacheUpdate, Holder, Neighbour
from mendflow.core.model.ids import JobId, PilotId
from mendflow.core.model.jobs import JobSpec, Measurements, Outcome
from mendflow.core.model.values import Value
from mendflow.lazy import lazy_pattern

SYNC_VERSION = 2
NAME_CHARS_MAX = 255
PATH_CHARS_MAX = 4096
NUMBER_MAX = 2**53
ATTEMPTS_MAX = 10_000
"""A request names no more running attempts, and as many that have ended: the server handles nothing else meanwhile."""

_DIGEST = lazy_pattern(r"[0-9a-f]{15,64}")  # servers exchange only prefixes of digests


class Capacity(msgspec.Struct, frozen=True, kw_only=True):
    """The total resources of a pilot. A free slot offers what running attempts leave. `system` and `machine` are its
    platform, in the words of core/model/platforms; empty if unknown. `runtime` is what runs containers there, one of
    core/model/containers; empty if nothing does."""

    slots: int
    cpus: float
    memory_bytes: int
    disk_bytes: int
    gpus: int = 0
    system: str = ""
    machine: str = ""
    runtime: str = ""


class AttemptRef(msgspec.Struct, frozen=True, array_like=True):
    job: JobId
    fence: int


NOT_STARTED = frozenset({"held", "staging"})
"""States of an attempt that can be given to another pilot as if it had never been here: nothing of the job has run.
Both server and pilot use this."""


class AttemptStatus(msgspec.Struct, frozen=True, array_like=True):
    """An attempt that the pilot holds: waiting, running or suspended by SIGSTOP; or ending, if it was lost and is not
    dead yet, so that nobody starts it again before. While it runs, `measures` are those so far. `values` are the job's
    reported values, the latest of each name: all of them, sent within about a second after a change; empty means
    unchanged."""

    job: JobId
    fence: int
    state: str  # held, staging (its inputs are fetched), running, suspended, keeping (its outputs are stored), ending
    measures: Measurements
    log_tail: str = ""  # sent now and then, after changes; empty means unchanged
    values: dict[str, Value] = {}


class AttemptReport(msgspec.Struct, frozen=True, array_like=True):
    """A finished attempt. Repeated until the server has given its verdict."""

    job: JobId
    fence: int
    outcome: Outcome


class AttemptControl(StrEnum):
    SUSPEND = "suspend"
    RESUME = "resume"
    CANCEL = "cancel"


class AttemptOrder(msgspec.Struct, frozen=True, array_like=True):
    job: JobId
    fence: int
    control: AttemptControl


class LogRequest(msgspec.Struct, frozen=True, array_like=True):
    """Somebody wants to read the log of an attempt that runs, from this byte on."""

    job: JobId
    fence: int
    offset: int


LOG_PART_BYTES = 1 << 20
LOG_SIZE_BYTES_MIN = 64 * 1024
"""The least that may be kept of a log."""


class LogPart(msgspec.Struct, frozen=True, array_like=True):
    """The answer to a `LogRequest` from `asked`: bytes of the log from `offset` on, which is later where what was asked
    for is left out; at most LOG_PART_BYTES of them. `size` is how many were printed so far, -1 if the pilot does not
    have the attempt."""

    job: JobId
    fence: int
    asked: int
    offset: int = 0
    data: bytes = b""
    size: int = -1


class Assignment(msgspec.Struct, frozen=True, array_like=True):
    """A job for a pilot, to be reported under this fence. `number` is the number of the try: grants that were returned
    unstarted do not count. Older servers omit it, and the fence is used. `secrets` are the values of those that the job
    uses, by name: they are in no document."""

    job: JobId
    fence: int
    spec: JobSpec
    number: int = 0
    secrets: dict[str, str] = {}


class ResourcesInUse(msgspec.Struct, frozen=True, array_like=True):
    """What all attempts of a pilot use together, whichever servers own them."""

    attempts: int
    cpus: float
    memory_bytes: int
    disk_bytes: int
    gpus: int


LEAVE_REASONS = {
    "idle": "no job came",
    "away": "no server answered",
    "time": "the pilot's time was over",
    "told": "the pilot was told to leave",
}
"""Why a pilot leaves, and the text for it."""


class SyncRequest(msgspec.Struct, frozen=True, kw_only=True):
    """`want` is how many jobs the pilot would take now; it depends on how short recent jobs were. `running` names every
    attempt that the pilot holds, each time; `reports` every finished one without a verdict."""

    pilot: PilotId
    serial: int
    host: str
    site: str = ""
    capacity: Capacity
    want: int
    heard: int = 0  # the newest serial whose answer the pilot had processed when it sent this
    ttl_ms: int = 0  # how long the pilot will still live; 0: no limit
    running: Annotated[list[AttemptStatus], msgspec.Meta(max_length=ATTEMPTS_MAX)] = []
    reports: Annotated[list[AttemptReport], msgspec.Meta(max_length=ATTEMPTS_MAX)] = []
    leaving: bool = False  # the pilot ends after this exchange: requeue its unstarted jobs
    wait_ms: int = 0  # how long the server may hold the answer
    version: int = SYNC_VERSION
    taken: ResourcesInUse | None = None  # set by a pilot that knows several servers
    knows: int = 0  # the mark of the servers that the pilot knows; 0: none
    front: str = ""  # the forwarding server; empty from pilots
    sent_at: int = 0  # the clock of its measures: only differences are used; 0: not given
    storage: str = ""  # its nearest storage element, if configured
    cache: CacheUpdate | None = None  # sent when the cache, or how it is shared, has changed since the server's version
    cache_version: int = 0  # the cache's version; 0: no cache
    neighbours: int = 0  # the mark of the neighbours that it knows
    submission: str = ""  # its name in a batch system, if it was submitted
    submission_secret: str = ""  # what it was given under this name, and nobody else was
    unfit: str = ""  # why it cannot work here: it ends after this exchange, and takes no job
    leaves: str = ""  # why it leaves, one of LEAVE_REASONS
    logs: Annotated[list[LogPart], msgspec.Meta(max_length=ATTEMPTS_MAX)] = []  # what it was asked for
    paused: str = ""  # why it takes no new job for now: its disk is full
    projects: tuple[str, ...] = ()  # those that its token names, as the server says that it sent it to; empty: all


def sync_flaw(request: SyncRequest) -> str:
    """What no real pilot would send, or empty. What is accepted here affects the pilot's later requests."""
    has = request.capacity
    numbers = {"slots": has.slots, "cpus": has.cpus, "memory_bytes": has.memory_bytes}
    numbers |= {"disk_bytes": has.disk_bytes, "gpus": has.gpus, "want": request.want, "heard": request.heard}
    numbers |= {"serial": request.serial, "ttl_ms": request.ttl_ms, "wait_ms": request.wait_ms}
    numbers |= {"sent_at": request.sent_at}
    if (taken := request.taken) is not None:
        numbers |= {"taken": min(taken.cpus, taken.memory_bytes, taken.disk_bytes, taken.gpus, taken.attempts)}
    for name, number in numbers.items():
        if not 0 <= number <= NUMBER_MAX:  # false for NaN
            return f"{name} is {number}"
    texts = {"pilot": request.pilot, "host": request.host, "site": request.site, "submission": request.submission}
    texts |= {"submission_secret": request.submission_secret}
    texts |= {"leaves": request.leaves, "system": has.system, "machine": has.machine, "runtime": has.runtime}
    for name, text in texts.items():
        if len(text) > NAME_CHARS_MAX or not text.isprintable():
            return f"{name} is longer than {NAME_CHARS_MAX} characters, or not printable"
    if any(len(part.data) > LOG_PART_BYTES or part.size > NUMBER_MAX for part in request.logs):
        return f"logs has more than {LOG_PART_BYTES} bytes at a time"
    if request.cache is not None and (wrong := _flaw_of_cache(request.cache)):
        return f"cache {wrong}"
    return "" if request.pilot else "pilot is empty"


def _flaw_of_cache(news: CacheUpdate) -> str:
    if not 0 <= news.base <= NUMBER_MAX or not 0 <= news.version <= NUMBER_MAX:
        return f"goes from version {news.base} to {news.version}"
    for text in (news.folder, news.address, news.key):
        if len(text) > PATH_CHARS_MAX or not text.isprintable():
            return f"is shared under what is longer than {PATH_CHARS_MAX} characters, or not printable"
    for file in news.added:
        if not _DIGEST.fullmatch(file.sha256) or not 0 <= file.bytes <= NUMBER_MAX:
            return f"has the file {file.sha256!r:.80} of {file.bytes} bytes"
    strange = next((digest for digest in news.gone if not _DIGEST.fullmatch(digest)), "")
    return f"has lost the file {strange!r:.80}" if strange else ""


class SyncAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """`accepted` and `refused` are verdicts on reports: after either the pilot forgets the attempt. `lost` names
    attempts in `running` that are no longer the pilot's: it kills them at once. `unclaimed` are those that this answer
    promises nothing for: with any of them, the pilot's lease is not renewed. `servers` are the addresses of all live
    servers, sent when the pilot knows others. `cache_seen` is the version of the pilot's cache that this server has.
    `neighbours` are the pilots whose caches it may use, sent when it knows others; None otherwise. `holders` are pilots
    of its site that have the jobs' inputs, as far as known: a few per file. `logs` are parts of logs that it should
    send with its next request, which it sends at once. `idle_exit_ms` is after how long without a job it should leave
    from now on; 0: as in its options."""

    serial: int
    lease_ms: int
    jobs: list[Assignment] = []
    accepted: list[AttemptRef] = []
    refused: list[AttemptRef] = []
    lost: list[AttemptRef] = []
    orders: list[AttemptOrder] = []
    unclaimed: list[AttemptRef] = []
    servers: list[str] = []
    cache_seen: int = 0
    neighbours: list[Neighbour] | None = None
    neighbours_mark: int = 0
    idle_exit_ms: int = 0
    holders: list[Holder] = []
    logs: list[LogRequest] = []


def servers_mark(servers: list[str]) -> int:
    """A number that identifies these addresses, so that a pilot can say in a few bytes which it knows."""
    if not servers:
        return 0
    return int.from_bytes(hashlib.sha256("\n".join(servers).encode()).digest()[:6])
