"""What holds for all attempts of a slot: how much of a log is kept, and which folders stay."""

import msgspec

from mendflow.pilot.bounds import LOG_BYTES_MAX
from mendflow.pilot.isolation.options import NOT_ISOLATED, Isolation
from mendflow.pilot.isolation.variables import PassedVariables


class SlotSettings(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`keep_all`: no folder is ever removed. `keep_failed`: that of a failed attempt is left to whoever sweeps them.
    `variables` says what jobs get of the pilot's environment, `isolation` as whom they run."""

    keep_all: bool = False
    keep_failed: bool = False
    log_bytes_max: int = LOG_BYTES_MAX
    variables: PassedVariables = PassedVariables()
    isolation: Isolation = NOT_ISOLATED


SLOT_SETTINGS = SlotSettings()
