"""What the servers on one store know of each other, and how they speak. docs/understand/decisions/0009 has the reasons.

`Membership` answers who lives and whether this server may still promise; `Homes` whose a case is; `Peers` carry a
pilot's exchange, or a nudge, to another server. A server that is alone has the same three, and never waits for them."""

from collections.abc import AsyncIterator, Collection
from typing import Final, Protocol

import msgspec

from mendflow.core.model.data import CacheAdvert
from mendflow.core.model.ids import CaseId, Instant, PilotId
from mendflow.core.model.sync import SyncAnswer, SyncRequest
from mendflow.core.model.views import PilotView
from mendflow.core.scheduling.provision import JobGroup

SERVER_KIND = "server"
HOME_KIND = "home"
ENGINE_KIND = "engine"
"""Foreign engines: each is a tree by its own name, with the exlets that mend its cases."""
CASE_KIND = "case"
LIVE_STATUSES = ("running", "suspended")
JOB_KIND = "job"
JOURNALS = "case/"
"""What the names of the streams begin with that journals of cases are."""


def root_of(id: str) -> CaseId:
    """The case whose tree a case, or anything that is named after one, belongs to: jobs, tasks, called cases and exlets
    live where it lives."""
    return CaseId(id.partition(".")[0].partition("/")[0].partition(":")[0])


ENDPOINT: Final = "-soap"
"""What the names of trees end with that are no case by themselves: messages begin cases in them."""


def story_of(id: str) -> CaseId:
    """The case that everything began with which this belongs to: the root of its tree, or where messages begin cases
    the one that a message began."""
    root = root_of(id)
    if not root.endswith(ENDPOINT):
        return root
    number = id.removeprefix(f"{root}.").partition(".")[0].partition("/")[0].partition(":")[0]
    return CaseId(f"{root}.{number}")


def only(roots: Collection[CaseId]) -> str:
    """What everything begins with that belongs to these trees: of several trees that is nothing."""
    return next(iter(roots)) if len(roots) == 1 else ""


class ServerDocument(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A server as the others see it. Others read no time in it: it lives while its version moves. The server itself,
    started again, reads when it last beat: by `meter`, which only means something to who has the same one."""

    id: str
    url: str
    incarnation: str = ""  # another for each time that it was started, or had to register anew
    host: str = ""
    version: str = ""
    started_at: Instant = 0
    beat: int = 0
    meter: str = ""  # which one its beats are read from; empty: one that does not outlive the process
    beaten_ms: int = 0  # what that said when this beat was sent
    ended: bool = False  # said by itself when it stopped, or by whoever found it dead
    silent_ms: int = 0  # for how long whoever found it dead had seen no beat of it; 0: it said itself that it ended
    changes: int = 0  # how often it changed what all servers share, such as rules: others then read that again
    waiting: int = 0  # jobs in its queue that a free slot somewhere could take
    running: int = 0
    pilots: int = 0
    cases: int = 0
    lease_ms: int = 0  # what it promises pilots: whoever takes its cases waits for no less
    demand: list[JobGroup] = []  # what waits there, by what it needs: whoever provides pilots counts it with its own


class HomeDocument(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Which server a tree of cases lives on. A server that starts again writes it anew, with its new incarnation: so
    whoever means to take it, because the one before is dead, comes too late."""

    root: CaseId
    server: str
    incarnation: str = ""
    moved_from: str = ""  # who had it before, until that one is fenced out of all its cases
    begins: bool = False  # it was made for a new case: that may not have begun


class Membership(Protocol):
    @property
    def id(self) -> str:
        """This server's own."""
        ...

    def may_promise(self) -> bool:
        """Whether a beat of ours was acknowledged so recently that nobody can have taken our cases."""
        ...

    def living(self) -> list[ServerDocument]:
        """The other servers that live, as last seen."""
        ...

    def find(self, server: str) -> ServerDocument | None:
        """A living server, this one included."""
        ...


class Homes(Protocol):
    def mine(self, case: CaseId) -> bool:
        """Whether this server decides about the case. True no sooner than the case's jobs are in memory: what a pilot
        runs and its home does not know is killed."""
        ...

    async def home_of(self, case: CaseId, *, afresh: bool = False) -> str:
        """The server that a case lives on, read from the store; empty only if there is no such document, which means
        that the case is over. `afresh`: what was known proved wrong, look again. Raises StoreUnavailable."""
        ...


class PeerUnavailable(Exception):
    """Another server could not be reached, or would not answer: it may not promise, or is being built anew."""


class Peers(Protocol):
    """The way to other servers. Nothing is repeated here: whoever asks knows what a lost answer means."""

    async def sync(self, server: ServerDocument, request: SyncRequest, who: str) -> SyncAnswer:
        """A pilot's exchange, for what lives over there. Raises NeighbourAway."""
        ...

    async def nudge(self, server: ServerDocument, *, pilots: list[PilotId], work: bool, by: str) -> None:
        """Let these pilots ask again, because something is to be said to them; `work`: whoever is idle may ask `by` for
        jobs. Lost nudges do no harm: pilots ask again by themselves. Never raises."""
        ...

    async def pilots(self, server: ServerDocument) -> list[PilotView]:
        """The pilots that it knows, for people to see. Raises NeighbourAway."""
        ...

    async def cards(self, server: ServerDocument) -> list[CacheAdvert]:
        """How the caches of the pilots that speak to it are shared: not for people. Raises NeighbourAway."""
        ...

    def archive(self, server: ServerDocument, root: CaseId) -> AsyncIterator[bytes]:
        """A tree that lives over there, as the bytes of an archive, whose digest says whether they are all. Raises
        NeighbourAway."""
        ...


class NoPeers:
    """No way to any other server."""

    async def sync(self, server: ServerDocument, request: SyncRequest, who: str) -> SyncAnswer:
        raise PeerUnavailable(f"there is no way from here to server {server.id}")

    async def nudge(self, server: ServerDocument, *, pilots: list[PilotId], work: bool, by: str) -> None: ...
    async def pilots(self, server: ServerDocument) -> list[PilotView]:
        return []

    async def cards(self, server: ServerDocument) -> list[CacheAdvert]:
        return []

    def archive(self, server: ServerDocument, root: CaseId) -> AsyncIterator[bytes]:
        raise PeerUnavailable(f"there is no way from here to server {server.id}")


NO_PEERS = NoPeers()
