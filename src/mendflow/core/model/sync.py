"""The one exchange between a pilot and a server, in MessagePack.

The pilot says what it has, what it runs and what ended; the server answers with jobs, with the verdict on each
report, and with controls. The server holds its answer back until there is something to say, and a newer request of
the same pilot releases the held one. A pilot renews all its leases at once: the answer to request `serial` promises
that nobody else gets the pilot's recognised attempts until `lease_ms` after that request was *sent*; the server
counts from when it answers, by its own clock, so its end is never before the pilot's.

Answers can overtake each other on two connections. So the pilot reads them in the order of serials, throws away one
that is older than what it has read, and says with `heard` how far it has read: a job handed out in answer `s` that
a request with `heard >= s` does not name was never started, and goes back to the queue at no charge.

Where several servers share a store, a pilot speaks to one of them, its *front*, which passes the very same request on
to whichever servers the attempts live on (`front` then says who passes it on). An answer names as `strange` what it
promises nothing for: that attempt lives elsewhere, and nobody else could be asked. A pilot that is told of strange
attempts obeys the rest, and does not renew its lease."""

import hashlib
import re
from enum import StrEnum

import msgspec

from mendflow.core.model.data import CacheUpdate, Holder, Neighbour
from mendflow.core.model.ids import JobId, PilotId
from mendflow.core.model.jobs import JobSpec, Measurements, Outcome
from mendflow.core.model.values import Value

SYNC_VERSION = 2
NAME_CHARS_MAX = 255
PATH_CHARS_MAX = 4096
NUMBER_MAX = 2**53
_DIGEST = re.compile(r"[0-9a-f]{15,64}")  # servers tell each other only how digests begin


class Capacity(msgspec.Struct, frozen=True, kw_only=True):
    """What a pilot has in all. A free slot offers what running attempts have left of it. `system` and `machine` say
    what it runs on, in the words of core/model/platforms; nothing if that is not known."""

    slots: int
    cpus: float
    memory_bytes: int
    disk_bytes: int
    gpus: int = 0
    system: str = ""
    machine: str = ""


class AttemptRef(msgspec.Struct, frozen=True, array_like=True):
    job: JobId
    fence: int


NOT_STARTED = frozenset({"held", "staging"})
"""States of an attempt that can be given to another pilot, as if it had never come to this one: nothing of the job
itself has run. Server and pilot both go by it."""


class AttemptStatus(msgspec.Struct, frozen=True, array_like=True):
    """An attempt that the pilot holds: waiting in the pilot, running or stopped by SIGSTOP; or ending, which is said of
    one that was lost and is not dead yet, so that nobody begins it anew before. While it runs, `measures` are those so
    far. `values` are what the job has reported of itself, the latest of each name: all of them, given when one has
    changed, and within about a second of that; empty means as before."""

    job: JobId
    fence: int
    state: str  # held, staging (what it needs is brought), running, suspended, keeping (what it made is), ending
    measures: Measurements
    log_tail: str = ""  # given now and then, when it has changed; empty means as before
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
    """A job for a pilot, to be reported under this fence. `number` says which try of it this is: those that came back
    unbegun do not count. A server that knows of no such number leaves it out, and the fence stands for it."""

    job: JobId
    fence: int
    spec: JobSpec
    number: int = 0


class ResourcesInUse(msgspec.Struct, frozen=True, array_like=True):
    """What all attempts that a pilot holds take together, whichever server they live on."""

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
"""Why a pilot leaves, and how that is said."""


class SyncRequest(msgspec.Struct, frozen=True, kw_only=True):
    """`want` is how many jobs the pilot would take now; it follows how short recent jobs were. `running` names every
    attempt that the pilot holds, each time; `reports` every finished one without a verdict yet."""

    pilot: PilotId
    serial: int
    host: str
    site: str = ""
    capacity: Capacity
    want: int
    heard: int = 0  # the newest serial whose answer the pilot had read when it sent this
    ttl_ms: int = 0  # how long the pilot will still live; 0 means without end
    running: list[AttemptStatus] = []
    reports: list[AttemptReport] = []
    leaving: bool = False  # the pilot ends after this exchange: give its unstarted jobs back
    wait_ms: int = 0  # how long the server may hold the answer
    version: int = SYNC_VERSION
    taken: ResourcesInUse | None = None  # said by a pilot that knows of several servers
    knows: int = 0  # the mark of the servers that the pilot knows; 0: none were told
    front: str = ""  # the server that passes this on; pilots leave it empty
    sent_at: int = 0  # by the clock that its measures are told by: only lengths of time are taken from it; 0: not said
    storage: str = ""  # the storage element that it reaches best, where it was told of one
    cache: CacheUpdate | None = (
        None  # said when the cache has changed since what the server has, or was shared otherwise
    )
    cache_version: int = 0  # what the cache is at; 0: it has none
    neighbours: int = 0  # the mark of the neighbours that it knows
    submission: str = ""  # under which name it was submitted to a batch system, if it was
    unfit: str = ""  # why it cannot work here: it ends after this exchange, and takes no job
    leaves: str = ""  # why it leaves, one of LEAVE_REASONS
    logs: list[LogPart] = []  # what it was asked for


def sync_flaw(request: SyncRequest) -> str:
    """What no pilot would say, or nothing. What is let in here decides about the pilot's later requests."""
    has = request.capacity
    numbers = {"slots": has.slots, "cpus": has.cpus, "memory_bytes": has.memory_bytes}
    numbers |= {"disk_bytes": has.disk_bytes, "gpus": has.gpus, "want": request.want, "heard": request.heard}
    numbers |= {"serial": request.serial, "ttl_ms": request.ttl_ms, "wait_ms": request.wait_ms}
    numbers |= {"sent_at": request.sent_at}
    if (taken := request.taken) is not None:
        numbers |= {"taken": min(taken.cpus, taken.memory_bytes, taken.disk_bytes, taken.gpus, taken.attempts)}
    for name, number in numbers.items():
        if not 0 <= number <= NUMBER_MAX:  # which no NaN is
            return f"{name} is {number}"
    texts = {"pilot": request.pilot, "host": request.host, "site": request.site, "submission": request.submission}
    texts |= {"leaves": request.leaves, "system": has.system, "machine": has.machine}
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
    attempts in `running` that are no longer the pilot's: it kills them at once. `strange` are those that this answer
    promises nothing for: with any of them, the pilot's lease is not renewed. `servers` are the addresses of all servers
    that live, told when the pilot knows others. `cache_seen` is the version of the pilot's cache that this server has.
    `neighbours` are the pilots whose caches it may use, told when it knows others; None otherwise. `holders` are those
    of its site that have what the jobs read, as far as they have told: a few for each file.
    `logs` are parts of logs that it is to send with its next request, which it sends at once.
    `idle_exit_ms` is after how long without a job it is to leave from now on; 0: as it was told when it was started."""

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
    """A number that stands for these addresses, so that a pilot can say in few bytes which it knows."""
    if not servers:
        return 0
    return int.from_bytes(hashlib.sha256("\n".join(servers).encode()).digest()[:6])
