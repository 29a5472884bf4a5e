"""Time zones by name, of the machine's database or, where there is none, of the package tzdata."""

from datetime import tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from mendflow.core.schedules.spec_checks import zone_flaw


def zone_or_flaw(name: str) -> tzinfo | str:
    """The zone, or what is wrong with its name."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return zone_flaw(name, available_timezones())
