"""What this server has heard of each connected domain, and when. Nothing of it is stored: after a restart the next
exchange tells it again."""

from collections.abc import Collection
from typing import Final

import msgspec
from msgspec.structs import replace

from mendflow.core.model.domains import DomainReport
from mendflow.core.model.ids import Instant
from mendflow.services.base.clock import Meter
from mendflow.services.base.contracts import Clock

SILENT_MS: Final = 30_000
"""Whoever was not heard for so long counts as silent, and what it said of itself as old."""
_SMOOTHING: Final = 0.3


class Contact(msgspec.Struct, frozen=True, kw_only=True):
    """`heard_at` is for people; `heard_ms` is by the server's steady clock. `refused` says why the domain does not take
    our requests, `trouble` why the last one had no answer; both are empty after the next answer."""

    heard_at: Instant = 0
    heard_ms: int | None = None
    reported_ms: int | None = None
    latency_ms: float = 0.0
    report: DomainReport | None = None
    refused: str = ""
    trouble: str = ""


NOT_HEARD: Final = Contact()


class Contacts:
    def __init__(self, clock: Clock, meter: Meter) -> None:
        self._clock = clock
        self._meter = meter
        self._by_name: dict[str, Contact] = {}

    def of(self, name: str) -> Contact:
        return self._by_name.get(name, NOT_HEARD)

    def record_contact(self, name: str, report: DomainReport | None = None, *, latency_ms: float | None = None) -> None:
        """The domain has answered, after so long, or has asked something (then there is no latency)."""
        before, now = self.of(name), self._meter()
        mean = before.latency_ms
        if latency_ms is not None:
            mean = latency_ms if not mean else mean + _SMOOTHING * (latency_ms - mean)
        answered = latency_ms is not None
        self._by_name[name] = replace(
            before,
            heard_at=self._clock.now(),
            heard_ms=now,
            reported_ms=now if report is not None else before.reported_ms,
            latency_ms=mean,
            report=report or before.report,
            refused="" if answered else before.refused,
            trouble="" if answered else before.trouble,
        )

    def refused(self, name: str, reason: str) -> None:
        self._by_name[name] = replace(self.of(name), refused=reason)

    def unreachable(self, name: str, reason: str) -> None:
        self._by_name[name] = replace(self.of(name), trouble=reason)

    def age_ms(self, name: str) -> int | None:
        """How old its report is; None if there is none."""
        reported = self.of(name).reported_ms
        return self._meter() - reported if reported is not None else None

    def is_silent(self, name: str) -> bool:
        heard = self.of(name).heard_ms
        return heard is None or self._meter() - heard > SILENT_MS

    def keep_only(self, names: Collection[str]) -> None:
        self._by_name = {name: known for name, known in self._by_name.items() if name in names}
