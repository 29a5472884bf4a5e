"""What a machine must have before a pilot registers.

The administrator of a site configures it once; each pilot checks it on the machine where jobs would run. A machine that
lacks something costs no job: its pilot reports what is missing, and stops."""

import msgspec

from mendflow.core.model.data import StorageElement

SCRIPT_MS = 60_000


class PilotChecks(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """`executables` must be on the PATH, or at their path. `disk_bytes` must be free where jobs run, and `memory_bytes`
    available to them. `python` is the oldest acceptable version, such as 3.11, and `modules` must be importable. Each
    of `storage` must be reachable. `script` is a shell command that must succeed within `script_ms`; otherwise its last
    line is the reason."""

    executables: tuple[str, ...] = ()
    disk_bytes: int = 0
    memory_bytes: int = 0
    python: str = ""
    modules: tuple[str, ...] = ()
    storage: tuple[StorageElement, ...] = ()
    script: str = ""
    script_ms: int = SCRIPT_MS
