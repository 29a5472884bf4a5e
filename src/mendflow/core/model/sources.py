"""Sources: what conditions can read beside the facts of an exception, as `sources.NAME`."""

from typing import Final, Literal

import msgspec

from mendflow.core.model.ids import Instant
from mendflow.core.model.values import Value
from mendflow.core.model.views import View

SourceKind = Literal["http", "command", "sql", "file"]
GUARDED_KINDS: Final[tuple[SourceKind, ...]] = ("command", "sql", "file")
"""Kinds that read what only the server can reach: a server has them only if it was started so."""
WhenAway = Literal["error", "value"]
TIMEOUT_MS: Final = 2_000
TIMEOUT_MS_MAX: Final = 30_000
CACHE_MS: Final = 10_000
CACHE_MS_MAX: Final = 86_400_000


class SourceSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """`address` is a URL, a command line, the URL of a database, or a path; `query` is the SQL. Both may have paths of
    the context in braces, as in `/stock/{case.data.sample}`. `select` is the part of a JSON answer
    that is wanted, as names with dots. If the source is `away`, the condition errs, or reads `value`."""

    name: str
    kind: SourceKind
    address: str
    query: str = ""
    select: str = ""
    timeout_ms: int = TIMEOUT_MS
    cache_ms: int = CACHE_MS
    secret: str = ""
    away: WhenAway = "error"
    value: Value = None

    def __repr__(self) -> str:
        return f"SourceSpec({self.name!r}, {self.kind!r})"  # keeps the secret out of logs


class SourceView(View, frozen=True):
    """A registered source; its secret is never shown."""

    name: str
    kind: SourceKind
    address: str
    query: str = ""
    select: str = ""
    timeout_ms: int = TIMEOUT_MS
    cache_ms: int = CACHE_MS
    has_secret: bool = False
    away: WhenAway = "error"
    value: Value = None
    made_at: Instant = 0
    made_by: str = ""


class SourceTrial(View, frozen=True):
    """What a source gave when it was tried: `message` says why it gave nothing."""

    ok: bool
    value: Value = None
    message: str = ""
    took_ms: int = 0
