"""What is stored about work that crosses domains. The origin has a document for each piece that it has sent, until the
host knows that its outcome has arrived; the host has one for each piece that it has taken, and one for each lease."""

from typing import Final, Literal

import msgspec

from mendflow.core.model.domains import SentWork, TriesThere, WorkControl
from mendflow.core.model.ids import CaseId, Instant
from mendflow.core.model.jobs import Outcome

SENT_KIND: Final = "sent-work"
HOSTED_KIND: Final = "hosted-work"
LEASE_KIND: Final = "hosted-lease"
DOMAIN_PORT: Final = "domain"
"""The port of cases that other domains have sent."""

SenderKind = Literal["job", "call"]


class SentDocument(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A piece of work at another domain. Its key is the id of the job, or of the case that a call would begin here. It
    is offered not before `not_before`. `lease_ms` is the longest lease that its host may have been granted, `losses`
    how often the host has stopped it and it was sent anew, under a higher fence. `acknowledged`: the host knows that we
    have its outcome."""

    key: str
    domain: str
    case: CaseId
    serial: int
    kind: SenderKind
    fence: int = 1
    work: SentWork | None = None  # until its outcome is known
    control: WorkControl = "run"
    reason: str = ""
    not_before: Instant = 0
    sent_at: Instant = 0
    ended_at: Instant = 0
    lease_ms: int = 0
    losses: int = 0
    there: str = ""  # the case there
    outcome: Outcome | None = None
    tries: TriesThere | None = None
    acknowledged: bool = False


class HostedDocument(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A piece of work that another domain has sent, under the highest fence that has come. The server of the origin
    that claims it has done so since its request `serial`. `stopped` says why it was stopped without its origin's
    asking. After its end was acknowledged it stays for a while, so that a late copy of a message finds it."""

    origin: str
    key: str
    fence: int
    flow: str  # the name that its case has
    single: bool = False  # a job, not a flow
    by_name: bool = False  # a flow of this domain
    bytes: int = 0  # of the files that came with it
    files: tuple[str, ...] = ()  # their digests
    sender: str = ""
    serial: int = 0
    control: WorkControl = "run"
    reason: str = ""
    stopped: str = ""
    over: bool = False
    taken_at: Instant = 0
    over_at: Instant = 0

    @property
    def id(self) -> str:
        return hosted_id(self.origin, self.key)

    @property
    def case_key(self) -> str:
        """The key that its case is started under: each fence is a case of its own."""
        return f"{DOMAIN_PORT} {self.origin} {self.key} {self.fence}"


class LeaseDocument(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Until when a server of another domain lets us do its work: by the meter of that name, and as the time that was
    left when this was written."""

    origin: str
    sender: str
    meter: str
    until_ms: int
    left_ms: int


def hosted_id_of(case_key: str) -> str:
    """The id of the work whose case has this key."""
    _, origin, rest = case_key.split(" ", 2)
    return hosted_id(origin, rest.rpartition(" ")[0])


def hosted_id(origin: str, key: str) -> str:
    return f"{origin}/{key}"
