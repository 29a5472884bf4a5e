"""What the owner of a server decides about it."""

from pathlib import Path

import msgspec

from mendflow.core.model.projects import CASES_PER_START, LIVE_INPUTS_BYTES
from mendflow.core.scheduling.data_wait import DATA_WAIT_MS
from mendflow.services.learning.service import LOOK_MS as LEARNING_LOOK_MS
from mendflow.services.observe.monitor_settings import MonitorSettings
from mendflow.services.recovery.job_watch import CHECK_MS
from mendflow.services.recovery.levels import DEFAULT_WAITS_MS
from mendflow.services.scheduling.sites.pilot_monitor import LOOK_MS as SITES_LOOK_MS


class ServerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What a server's owner decides. `files_roots` are the folders that flows may read local files from; `levels_ms`
    the waits of the retry levels; `check_ms` the interval of the check for jobs that no pilot can take. Without
    `recovery` no rule is asked. `holds_unhandled`: a case whose failure no rule takes up is held for a person, unless
    its flow says otherwise. Without `continues_found`, cases that a server alone on its store finds unfinished wait
    until it is asked to resume them. `domain` is the name that the owner gives to this domain; one without a name is
    called like the machine, `host`. `domain_lease_ms` is the lease on what this domain sends to others; 0: as long as a
    restart of theirs may take. Without `schedules` none of them is started here, as in a server that ends with its
    case. `owner_only`: it works for whoever has started it, whatever tokens its store has. Without `learning` nothing
    that ends is counted, and no sizes are learned. `long_steps_aside`: a process beside the server does the steps of
    cases whose expressions do much work. `cases_per_start_max` are the live cases that a started one may have at once,
    with all that they call. `teller` is the account that runs the server, as one who says where a case came from."""

    lease_ms: int = 30_000
    domain_lease_ms: int = 0
    losses_max: int = 20
    cases_per_start_max: int = CASES_PER_START
    live_inputs_bytes: int = LIVE_INPUTS_BYTES  # memory for the inputs of each project's live cases; 0: any
    files_roots: tuple[Path, ...] | None = ()
    owner_only: bool = False
    recovery: bool = True
    levels_ms: tuple[int, ...] = DEFAULT_WAITS_MS
    check_ms: int = CHECK_MS
    holds_unhandled: bool = False
    monitor: MonitorSettings = MonitorSettings()
    sites_look_ms: int = SITES_LOOK_MS
    learning: bool = True
    learning_look_ms: int = LEARNING_LOOK_MS
    data_wait_ms: int = DATA_WAIT_MS  # how long a job is kept back for an idle pilot that has its data
    continues_found: bool = True
    schedules: bool = True
    reports: Path | None = None  # where `mendflow run` writes a page about each case
    domain: str = ""
    host: str = ""
    teller: str = ""
    long_steps_aside: bool = False
