"""What a deployed flow does by itself: files that arrive and times that are due start cases of it, and the ends of its
cases are told."""

from typing import Final, Literal

import msgspec

from mendflow.core.model.ids import Instant
from mendflow.core.model.values import Value

EndKind = Literal["completed", "failed", "cancelled"]
CatchUp = Literal["skip", "latest", "all"]
Overlap = Literal["wait", "skip", "allow", "replace"]
CATCH_UPS: Final[tuple[CatchUp, ...]] = ("skip", "latest", "all")
OVERLAPS: Final[tuple[Overlap, ...]] = ("wait", "skip", "allow", "replace")
WATCH_MS: Final = 10_000
"""How often a folder is looked at, and how long a file must be unchanged, unless a flow says otherwise."""


class FileArrival(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Each file that arrives starts one case, once it has not changed for `stable_ms`. It is looked for below `prefix`
    of the storage element `element`; without an element, in `folder`, a path on the server's machine. `match` is a
    pattern for its path there, and `input` the input of the flow that gets it."""

    input: str
    element: str = ""
    prefix: str = ""
    folder: str = ""
    match: str = "*"
    every_ms: int = WATCH_MS
    stable_ms: int = WATCH_MS

    @property
    def where(self) -> str:
        """As a flow file says it."""
        return f"{self.element}:{self.prefix}" if self.element else self.folder


class ScheduleTrigger(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A case is started at each due time, as a schedule of the flow's name does."""

    cron: str = ""
    every_ms: int = 0
    timezone: str = "UTC"
    inputs: dict[str, Value] = {}
    catch_up: CatchUp = "latest"
    overlap: Overlap = "wait"
    starts_at: Instant = 0
    ends_at: Instant = 0


class EndNotice(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Cases that end in one of these ways are told to these: URLs, or names of webhooks."""

    on: tuple[EndKind, ...]
    notify: tuple[str, ...]


class FlowTriggers(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The key `on` of a flow. It takes effect when an administrator deploys the flow with it."""

    files: FileArrival | None = None
    notices: tuple[EndNotice, ...] = ()
    schedule: ScheduleTrigger | None = None
