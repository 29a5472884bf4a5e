"""What holds for all attempts of a slot: how much of a log is kept, and which folders stay."""

import msgspec

from mendflow.pilot.bounds import LOG_BYTES_MAX


class SlotSettings(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`keep_all`: no folder is ever removed. `keep_failed`: that of a failed attempt is left to whoever sweeps them."""

    keep_all: bool = False
    keep_failed: bool = False
    log_bytes_max: int = LOG_BYTES_MAX


SLOT_SETTINGS = SlotSettings()
