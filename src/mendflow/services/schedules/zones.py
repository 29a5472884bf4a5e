"""Time zones by name, of the machine's database or, where there is none, of the package tzdata."""

from datetime import tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from mendflow.core.model.errors import InvalidRequest
from mendflow.core.schedules.spec_checks import zone_flaw


@lru_cache(maxsize=256)
def zone_named(name: str) -> tzinfo:
    """Raises InvalidRequest if there is none of this name."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidRequest(f"timezone: {zone_flaw(name, available_timezones())}", field="timezone") from None
