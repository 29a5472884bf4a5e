"""What domains say to each other. Two domains that are connected exchange messages; the one that has sent work, its
origin, begins each exchange, the one that does the work, its host, answers.

Work is a flow that the host runs as a case. A single job is sent as a flow of one job. An origin names each piece by a
key, and raises its fence whenever it sends it anew. The host takes each key and fence once.

A host may do a piece of work only while it holds a lease on it. It asks for leases by a stamp, which is its own steady
clock, and the origin returns that stamp with what it grants. So the host counts a lease from before it asked, and the
origin from when it granted: whatever delays a message, the host's lease ends first."""

from typing import Literal

import msgspec

from mendflow.core.model.ids import Instant
from mendflow.core.model.jobs import Attempt, JobSpec, Outcome
from mendflow.core.model.sync import Capacity
from mendflow.core.model.values import FileRef, Value

PROTOCOL = 1
"""A host answers requests of this and of lower versions; an origin that gets a lower one sends only what that knows."""

LEASE_MS_MAX = 15 * 60_000
"""No longer lease is granted because a host asks for it, and none counts as longer, whatever an origin grants."""

ANY_DOMAIN = "any"
"""In a flow: wherever it can be done best. A job or a call that says nothing stays here."""


class DomainReport(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a domain can do and has to do, as it says of itself. `largest` is the largest pilot, and so the largest job
    that fits; `shapes` are the different kinds of pilots that it has or can get, the largest first; `platforms` are
    the systems and machines of its pilots, as `system/machine`. `logical_files` are names of files that its storage
    elements hold, the newest first; `files_cut` says that there are more. `wait_ms` is how long
    jobs have waited of late, as a median; `charge` is what an hour of a CPU costs, as its administrator says.
    `draining`: it takes no new work of whoever gets this report."""

    version: str = ""
    slots: int = 0
    slots_free: int = 0
    largest: Capacity | None = None
    shapes: tuple[Capacity, ...] = ()
    platforms: tuple[str, ...] = ()
    elements: tuple[str, ...] = ()
    logical_files: tuple[str, ...] = ()
    files_cut: bool = False
    flows: tuple[str, ...] = ()
    waiting: int = 0
    running: int = 0
    wait_ms: int = 0
    charge: float = 0.0
    draining: bool = False


class DomainRights(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What a connected domain may do here. `flows` are the flows that it may start by name (`*` is any); `own_flows`
    says whether it may send flows and jobs of its own. Work of it gets pilots of `sites` only, if some are named. It
    may have so many pieces of work here at a time, and so many bytes of files."""

    flows: tuple[str, ...] = ()
    own_flows: bool = True
    sites: tuple[str, ...] = ()
    work_max: int = 10_000
    bytes_max: int = 100 * 1024**3


NO_FLOW = msgspec.Raw()
"""In place of a flow. Another empty one would not be left out, and would be no JSON."""


class SentWork(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A piece of work, whole: a single job, or a flow as this server's format has it, or neither, if the host is to run
    its own flow `name`; the inputs of the flow, and the stored files that all of it refers to. `owner` is its owner at
    the origin; the host puts the origin's name before it. `way` are the domains that it has come through, the first of
    them the true origin."""

    key: str
    fence: int
    name: str
    job: JobSpec | None = None
    flow: msgspec.Raw = NO_FLOW
    inputs: dict[str, Value] = {}
    files: tuple[FileRef, ...] = ()
    owner: str = ""
    way: tuple[str, ...] = ()


class WorkRef(msgspec.Struct, frozen=True, array_like=True):
    key: str
    fence: int


WorkControl = Literal["run", "suspend", "cancel"]


class WorkClaim(msgspec.Struct, frozen=True, array_like=True):
    """A piece of work that its origin claims, and what it wants of it. What is claimed no longer, its host stops."""

    key: str
    fence: int
    control: WorkControl = "run"
    reason: str = ""


WorkState = Literal["missing-files", "running", "suspended", "ended", "refused", "unknown"]


class TriesThere(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How often a job was tried at its host, and the attempts, by the host's clock."""

    fence: int
    unbegun: int = 0
    failures: int = 0
    losses: int = 0
    attempts: tuple[Attempt, ...] = ()


class WorkStatus(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A piece of work at its host. `unknown`: the host has not got it, so the origin sends it. `missing` are digests of
    files that the host needs first. `outcome` comes with `ended`, and is repeated until the origin acknowledges it.
    `progress` and `reason` are for people: of a job, whether it is waiting, running or staging, and why it waits.
    `stuck`: no pilot of the host could ever take it. It runs since `began_at`, by the host's clock; `log_tail` is the
    end of what it has printed so far; `tries` come with its end."""

    key: str
    fence: int
    state: WorkState
    case: str = ""
    missing: tuple[str, ...] = ()
    outcome: Outcome | None = None
    progress: str = ""
    reason: str = ""
    host: str = ""
    site: str = ""
    attempts: int = 0
    losses: int = 0
    stuck: bool = False
    began_at: Instant = 0
    log_tail: str = ""
    tries: TriesThere | None = None


class DomainRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """From the origin. `sender` is the server of the origin that asks: each server claims its own work, and what it
    says is about that alone; one that was started anew counts as another. `claims` is all of it. `granted_stamp` is the
    newest stamp that this server has seen of the host, by the meter of that name, and `lease_ms` what it grants,
    counted from that stamp, for everything among the claims. `heard` is the serial of the newest request whose answer
    has come. `acknowledged` are ended works whose outcomes are on the origin's disk. The host may hold its answer for
    `hold_ms`, and answers it at once when a newer request of that server comes. `urls` is where that server is reached
    now: it may have moved since the two were connected."""

    protocol: int = PROTOCOL
    sender: str
    serial: int
    heard: int = 0
    report: DomainReport | None = None
    sent: tuple[SentWork, ...] = ()
    claims: tuple[WorkClaim, ...] = ()
    granted_stamp: int = 0
    granted_meter: str = ""
    lease_ms: int = 0
    acknowledged: tuple[WorkRef, ...] = ()
    hold_ms: int = 0
    urls: tuple[str, ...] = ()


class DomainAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """From the host: its stamp, by a meter that is named, its report now and then, and of the works among the claims
    those whose status has changed since the newest answer that the origin has heard. `serial` is that of the request if
    this answers it in full, and 0 if a newer request, or the same one, was there before. A lease shorter than
    `lease_min_ms` is of no use there: it has to stop its pilots before it ends."""

    protocol: int = PROTOCOL
    stamp: int
    serial: int = 0
    meter: str = ""
    lease_min_ms: int = 0
    report: DomainReport | None = None
    works: tuple[WorkStatus, ...] = ()


class InvitationAcceptance(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Sent by the domain that accepts an invitation, which it shows as its token: its name, the name by which it knows
    the other, the token by which it will know the other, and where it can be reached."""

    protocol: int = PROTOCOL
    domain: str
    inviter: str
    token: str
    urls: tuple[str, ...] = ()


class InvitationAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The domain that invited, and the token by which it knows the one that has accepted from now on."""

    protocol: int = PROTOCOL
    domain: str
    token: str


class InvitationSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What an administrator says of a domain that is invited: its rights here, where it is reached (none: where it
    says itself, if that is a public address), and how long the invitation holds."""

    rights: DomainRights = DomainRights()
    urls: tuple[str, ...] = ()
    minutes: int = 60


class ConnectionSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What an administrator says of a domain whose invitation is accepted: where it is reached, the invitation, its
    rights here, and where it is to reach us (none: the address of the server that is asked)."""

    urls: tuple[str, ...]
    token: str
    rights: DomainRights = DomainRights()
    own_urls: tuple[str, ...] = ()


class DomainAddress(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Where servers of a connected domain are reached, as an administrator says."""

    urls: tuple[str, ...]


class InvitationView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An invitation. The token is shown this once. `domain` is the name of the domain that invites."""

    name: str
    token: str
    domain: str
    url: str
    expires_at: Instant


ConnectionState = Literal["invited", "connected", "silent", "draining", "refused"]


class DomainView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A connected domain, as its neighbour sees it. It is `silent` while nothing was heard of it for long, and
    `refused` where it does not know our token: it has disconnected, or was connected anew. `told` is where its servers
    say they are, beside the addresses that it was connected with; they are called where those take no connection."""

    name: str
    url: str
    state: ConnectionState
    connected_at: Instant = 0
    heard_at: Instant = 0
    latency_ms: float = 0.0
    report: DomainReport | None = None
    rights: DomainRights = DomainRights()
    sent: int = 0  # pieces of our work there
    held: int = 0  # pieces of its work here
    retrying: int = 0  # jobs of ours that wait for their next try there
    cases: tuple[str, ...] = ()  # some of our cases that need it to go on
    told: tuple[str, ...] = ()
    reason: str = ""


class DomainsView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """This domain's own name and charge, and the domains that it is connected with."""

    name: str
    charge: float = 0.0
    domains: tuple[DomainView, ...] = ()
