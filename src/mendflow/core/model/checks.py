"""What a place must have before a pilot registers there.

Whoever runs a site says it once; each pilot looks by itself, on the machine where jobs would run. A place that lacks
something costs no job: its pilot says what is missing, and ends."""

import msgspec

from mendflow.core.model.data import StorageElement

SCRIPT_MS = 60_000


class PilotChecks(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """`executables` are looked for on the PATH, or where they are if they name a place. `disk_bytes` must be free where
    jobs run, and `memory_bytes` be there for them. `python` is the oldest version that will do, such as 3.11, and
    `modules` are what it must find. Of each of `storage` the top must answer. `script` is a command for the shell that
    must end well within `script_ms`; what it says last is the reason if it does not."""

    executables: tuple[str, ...] = ()
    disk_bytes: int = 0
    memory_bytes: int = 0
    python: str = ""
    modules: tuple[str, ...] = ()
    storage: tuple[StorageElement, ...] = ()
    script: str = ""
    script_ms: int = SCRIPT_MS
