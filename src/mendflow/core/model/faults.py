"""A fault is the world's: a job that failed, a lease that ended, a file that is not there.

It is a value, not an exception: it travels to whoever can do something about it, and is shown as it is."""

from enum import StrEnum

import msgspec

from mendflow.core.model.values import Value


class Category(StrEnum):
    """Where in its life a job failed, after the two families of submission and execution failures."""

    NETWORK = "network"  # the meta-scheduler could not be reached
    SCHEDULER_DOWN = "scheduler-down"
    REFUSED = "refused"  # the meta-scheduler answered and would not take the job
    RESOURCE = "resource"  # the place it ran in was lost or could not be had
    DATA = "data"  # an input was not there or did not arrive
    INPUT = "input"  # the job was described wrongly
    JOB = "job"  # the job itself failed: exit code, signal, exception
    MEMORY = "memory"  # it took more memory than it asked for, or than there was
    TIME = "time"  # it took longer than it asked for
    OUTPUT = "output"  # a declared output was missing or could not be kept
    CLEANUP = "cleanup"  # its processes would not die, or its folder could not be made clean
    CANCELLED = "cancelled"  # somebody asked for its end
    FLOW = "flow"  # thrown by the flow itself, or an expression that could not be evaluated


class AttemptStage(StrEnum):
    """How far an attempt had come when it failed."""

    SUBMISSION = "submission"  # on its way to whoever executes it
    STAGE_IN = "stage-in"  # its files, or its code, were being brought
    START = "start"  # its folder was being made, its process started, its function loaded
    EXECUTION = "execution"
    STAGE_OUT = "stage-out"  # what it left was being looked at, or stored
    CLEANUP = "cleanup"  # it was over, and what it left behind would not go


INFRASTRUCTURE_CATEGORIES = frozenset({Category.NETWORK, Category.SCHEDULER_DOWN, Category.RESOURCE})
"""Faults of these categories are not the job's own and do not spend its retries."""


class Fault(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What went wrong: a name that handlers catch by, the category, a sentence, and what was measured.

    `stage` is one of Stage, or empty outside of attempts; `file` is the path, in the job's folder, of the file that it
    is about. `data` says, by the name: of memoryLimit and memoryKilled `peak_bytes` and `limit_bytes`; of timeLimit
    `ran_ms` and `limit_ms`; of signal the signal's `signal` by its name; of an exception its `type` and, nearest first,
    the `types` that it is also of; of missingInput the `source` that was tried, the `others` that were not, and the
    `reason`; of diskFull `free_bytes` and `folder`; of cannotStart `errno`, by its name; of notCleaned what was
    `left`; of lost, if its pilot has left and said why, that word as `left`."""

    name: str
    category: Category
    message: str
    data: Value = None
    exit_code: int | None = None
    signal: int | None = None
    log_tail: str = ""
    stage: str = ""
    file: str = ""

    @property
    def infrastructure(self) -> bool:
        return self.category in INFRASTRUCTURE_CATEGORIES
