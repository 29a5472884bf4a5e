"""What the servers on one store know of each other, and how they communicate. docs/understand/decisions/0009 has the
reasons.

`Membership` says who is alive and whether this server may still make promises to pilots; `Homes` says which server a
case lives on; `Peers` sends a pilot's exchange, or a nudge, to another server. A server that is alone on its store has
implementations that never wait."""

from collections.abc import AsyncIterator, Collection
from typing import Final, Protocol

import msgspec

from mendflow.core.model.data import CacheAdvert
from mendflow.core.model.ids import CaseId, Instant, JobId, PilotId
from mendflow.core.model.sync import SyncAnswer, SyncRequest
from mendflow.core.model.views import PilotView
from mendflow.core.scheduling.provision import JobGroup

SERVER_KIND = "server"
HOME_KIND = "home"
ENGINE_KIND = "engine"
"""Engines of other systems: each counts as a tree by its own name, with the exlets that mend its cases."""
CASE_KIND = "case"
LIVE_STATUSES = ("running", "suspended")
JOB_KIND = "job"
JOURNALS = "case/"
"""The prefix of the streams that are journals of cases."""


def root_of(id: str) -> CaseId:
    """The root of the tree of cases that a case, or anything named after one, belongs to: jobs, user tasks, called
    cases and exlets live where the root lives."""
    return CaseId(id.partition(".")[0].partition("/")[0].partition(":")[0])


ENDPOINT: Final = "-soap"
"""The suffix of trees that are not a case themselves: messages start the cases in them."""


def first_case_of(id: str) -> CaseId:
    """The case that everything in its history began with: the root of its tree, or, where messages start cases, the
    case that a message started."""
    root = root_of(id)
    if not root.endswith(ENDPOINT):
        return root
    number = id.removeprefix(f"{root}.").partition(".")[0].partition("/")[0].partition(":")[0]
    return CaseId(f"{root}.{number}")


def only(roots: Collection[CaseId]) -> str:
    """The common prefix of all ids in these trees; of several trees it is empty."""
    return next(iter(roots)) if len(roots) == 1 else ""


class ServerDocument(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A server as the others see it. Others read no time in it: the server is alive while the version of its document
    changes. The server itself, after a restart, reads when its last heartbeat was: by `meter`, which means something
    only to a process with the same meter."""

    id: str
    url: str
    incarnation: str = ""  # a new one for each start, and each time that it had to register again
    host: str = ""
    version: str = ""
    started_at: Instant = 0
    beat: int = 0
    meter: str = ""  # which meter its heartbeats are timed by; empty: one that ends with the process
    beaten_ms: int = 0  # what the meter said when this heartbeat was sent
    ended: bool = False  # set by the server when it stopped, or by the server that found it dead
    silent_ms: int = 0  # how long it had been silent when another server found it dead; 0: it stopped by itself
    changes: int = 0  # how often it changed what all servers share, such as rules: others then read that again
    waiting: int = 0  # jobs in its queue that a free slot of any pilot could take
    running: int = 0
    pilots: int = 0
    cases: int = 0
    schedules: bool = True  # it starts cases at due times; one of an older version does not say so
    lease_ms: int = 0  # the lease that it promises pilots: a server that takes over its cases waits at least that long
    job_owners: list[str] = []  # some of those who may let jobs run at it: who runs jobs as itself looks at these
    demand: list[JobGroup] = []  # its waiting jobs, by needs: provisioning counts them with its own
    inherited: dict[JobId, int] = {}
    """Jobs that it took over and whose pilots it has promised nothing since: how long the promise of an earlier server
    lasts, in ms from this heartbeat on. A server that takes over from this one waits no longer than that."""


class HomeDocument(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Which server a tree of cases lives on. A server that restarts writes it again, with its new incarnation: so a
    server that wants to take the tree over, because the earlier incarnation is dead, comes too late."""

    root: CaseId
    server: str
    incarnation: str = ""
    moved_from: str = ""  # who had it before, until that server is fenced out of all its cases
    begins: bool = False  # it was made for a new case, which may not have begun


class Membership(Protocol):
    @property
    def id(self) -> str:
        """The id of this server."""
        ...

    def may_promise(self) -> bool:
        """Whether a heartbeat of this server was acknowledged so recently that nobody can have taken over its cases."""
        ...

    def live_servers(self) -> list[ServerDocument]:
        """The other live servers, as last seen."""
        ...

    def find(self, server: str) -> ServerDocument | None:
        """A live server, this one included."""
        ...

    async def publish(self) -> None:
        """Write this server's document with what is known by now, and wait until it is on disk."""
        ...


class Homes(Protocol):
    def mine(self, case: CaseId) -> bool:
        """Whether this server decides about the case. True only after the case's jobs are in memory: an attempt that
        its home does not know is killed."""
        ...

    async def home_of(self, case: CaseId, *, afresh: bool = False) -> str:
        """The server that a case lives on, read from the store; empty only if there is no such document, which means
        that the case is over. `afresh`: the known answer proved wrong, read it again. Raises StoreUnavailable."""
        ...


class PeerUnavailable(Exception):
    """Another server could not be reached, or would not answer: it may not make promises at the moment, or its services
    are being rebuilt."""


class Peers(Protocol):
    """Sends requests to other servers. Nothing is retried here: the caller knows what a lost answer means."""

    async def sync(self, server: ServerDocument, request: SyncRequest, who: str) -> SyncAnswer:
        """A pilot's exchange, about the jobs of that server. Raises PeerUnavailable."""
        ...

    async def nudge(self, server: ServerDocument, *, pilots: list[PilotId], work: bool, by: str) -> None:
        """Tell these pilots to ask again, because there is something for them; `work`: idle pilots may ask the server
        `by` for jobs. Lost nudges do no harm: pilots ask again by themselves. Never raises."""
        ...

    async def pilots(self, server: ServerDocument) -> list[PilotView]:
        """The pilots that it knows, for people to see. Raises PeerUnavailable."""
        ...

    async def cards(self, server: ServerDocument) -> list[CacheAdvert]:
        """How the pilots that are connected to it share their caches; for servers, not for people. Raises
        PeerUnavailable."""
        ...

    def archive(self, server: ServerDocument, root: CaseId) -> AsyncIterator[bytes]:
        """A tree that lives on that server, as the bytes of an archive, whose digest shows whether it is complete.
        Raises PeerUnavailable."""
        ...


class NoPeers:
    """There are no other servers."""

    async def sync(self, server: ServerDocument, request: SyncRequest, who: str) -> SyncAnswer:
        raise PeerUnavailable(f"server {server.id} cannot be reached from here")

    async def nudge(self, server: ServerDocument, *, pilots: list[PilotId], work: bool, by: str) -> None: ...
    async def pilots(self, server: ServerDocument) -> list[PilotView]:
        return []

    async def cards(self, server: ServerDocument) -> list[CacheAdvert]:
        return []

    def archive(self, server: ServerDocument, root: CaseId) -> AsyncIterator[bytes]:
        raise PeerUnavailable(f"server {server.id} cannot be reached from here")


NO_PEERS = NoPeers()
