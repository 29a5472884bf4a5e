"""How much a pilot keeps of what attempts print and leave behind."""

from typing import Final

import msgspec

from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.sync import LOG_SIZE_BYTES_MIN

LOG_BYTES_MAX: Final = 100_000_000
LOG_BYTES_MIN: Final = LOG_SIZE_BYTES_MIN
KEEP_FAILED_MS: Final = 24 * 3600 * 1000
KEEP_FAILED_BYTES: Final = 10 << 30
KEEP_FAILED_MAX: Final = 100


class KeepLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How long folders of failed attempts are kept, and how many at most, of how many bytes together. With a zero
    anywhere none is."""

    age_ms: int = KEEP_FAILED_MS
    bytes: int = KEEP_FAILED_BYTES
    number: int = KEEP_FAILED_MAX

    @property
    def keeps_any(self) -> bool:
        return min(self.age_ms, self.bytes, self.number) > 0


class AttemptBounds(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept of all attempts of a pilot."""

    log_bytes_max: int = LOG_BYTES_MAX
    keep_failed: KeepLimits = KeepLimits()

    @property
    def options(self) -> list[str]:
        """As options of a command that is a pilot, or starts one."""
        kept = self.keep_failed
        return [
            *("--log-size", f"{self.log_bytes_max} B"),
            *("--keep-failed", f"{kept.age_ms} ms"),
            *("--keep-failed-size", f"{kept.bytes} B"),
            *("--keep-failed-max", str(kept.number)),
        ]


USUAL_BOUNDS: Final = AttemptBounds()


def keep_limits(age_ms: int, size: int, number: int) -> KeepLimits:
    if min(age_ms, size, number) < 0:
        raise InvalidRequest("folders of failed attempts cannot be kept for less than no time, nor fewer than none")
    return KeepLimits(age_ms=age_ms, bytes=size, number=number)


def log_bytes(size: int) -> int:
    if size < LOG_BYTES_MIN:
        raise InvalidRequest(f"of a log {size} bytes cannot be all that is kept: allow {LOG_BYTES_MIN} or more")
    return size
