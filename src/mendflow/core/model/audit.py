"""Who did what: the entries of the audit log, and what is asked of it."""

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from mendflow.core.model.ids import Instant
from mendflow.core.model.parameters import AfterPage, Limit
from mendflow.core.model.views import View

Outcome = Literal["done", "refused", "failed", "unanswered"]
"""What became of a request: it was carried out; the caller was told no; the server could not; or the connection ended
before an answer was sent, so that the caller does not know."""

TEXT_CHARS_MAX: Final = 200
"""So long is what an entry says of a request at most: names and ids, never bodies."""

AUDIT_CHAIN_KIND: Final = "audit-chain"
AUDIT_SEGMENT_KIND: Final = "audit-segment"
AUDIT_CUT_KIND: Final = "audit-cut"
AUDIT_GAP_KIND: Final = "audit-gap"
AUDIT_KINDS: Final = frozenset({AUDIT_CHAIN_KIND, AUDIT_SEGMENT_KIND, AUDIT_CUT_KIND, AUDIT_GAP_KIND})
"""Documents of the audit log. They belong to no case."""


class RequestRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What one request was, before it is chained. `source` is the address that it came from; `object` what it is about,
    in `project`, if it is about something of one; `made` the id of what it made; `code` why it was refused; `left_out`
    how many refusals before this one were not written, because there were too many."""

    who: str
    source: str
    operation: str
    object: str = ""
    project: str = ""
    made: str = ""
    outcome: Outcome = "done"
    code: str = ""
    request: str = ""
    left_out: int = 0


class AuditEntry(RequestRecord, frozen=True, kw_only=True, omit_defaults=True):
    """An entry of a server's chain. `number` counts from 1; `previous` is the SHA-256 of the entry before, as it is
    stored: of the first it is empty."""

    server: str
    number: int
    at: Instant
    previous: str = ""


class AuditChain(msgspec.Struct, frozen=True, kw_only=True):
    """How long the chain of a server is, and the SHA-256 of its last entry. Written together with the entries."""

    server: str
    count: int
    sha256: str


class AuditSegment(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of a chain, which has a stream of its own, so that it can go as a whole. `first` is the number of its
    first entry, written at `at`; `previous` the SHA-256 of the entry before."""

    server: str
    first: int
    at: Instant
    previous: str


class AuditCut(msgspec.Struct, frozen=True, kw_only=True):
    """The beginning of a chain that went by age: so many entries, the last of which had this SHA-256."""

    server: str
    count: int
    sha256: str
    at: Instant


class AuditGap(msgspec.Struct, frozen=True, kw_only=True):
    """How often a server of this name that keeps no record was used on a store that has one, and when the last of these
    times began."""

    server: str
    count: int
    at: Instant


class AuditQuery(View, frozen=True):
    """Entries from `since` on and before `until`, in milliseconds since 1970; of one caller, operation, object
    or project, if these are given. `object` is what was made, too, and everything below it: of a case its items, jobs,
    user tasks and the cases that it called."""

    since: Annotated[int, Meta(ge=0)] = 0
    until: Annotated[int, Meta(ge=0, description="0: until now.")] = 0
    who: str = ""
    operation: str = ""
    without: Annotated[str, Meta(description="An operation whose entries are left out, such as store_file.")] = ""
    object: str = ""
    project: str = ""
    outcome: Annotated[str, Meta(description="done, refused, failed or unanswered.")] = ""
    limit: Limit = 100
    after: AfterPage = ""


class AuditPage(View, frozen=True):
    rows: list[AuditEntry]
    next: str = ""


class ChainView(View, frozen=True):
    """What a look at all entries of a chain has found. `entries` are there, after `cut` that went by age; `sha256` is
    that of the last one; `problem` says where the chain is broken, and is empty if it is whole. `unrecorded` is how
    often a server of this name that keeps no record was used, such as that of `mendflow run`, the last time from
    `unrecorded_at` on: what was done then is in no chain."""

    server: str
    entries: int
    cut: int
    sha256: str
    problem: str = ""
    unrecorded: int = 0
    unrecorded_at: Instant = 0
