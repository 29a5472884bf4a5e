"""Faults: failures of the world, such as a failed job, an expired lease, a missing file.

A fault is a value, not an exception: it is passed to whoever can handle it, and is shown as it is."""

from enum import StrEnum
from typing import Final

import msgspec

from mendflow.core.model.values import Value


class Category(StrEnum):
    """Where in its life a job failed, by the two families of submission and execution failures."""

    NETWORK = "network"  # the meta-scheduler could not be reached
    SCHEDULER_DOWN = "scheduler-down"
    REFUSED = "refused"  # the meta-scheduler refused the job
    RESOURCE = "resource"  # its machine was lost or unavailable
    DATA = "data"  # an input was missing or did not arrive
    INPUT = "input"  # the job's description was wrong
    JOB = "job"  # the job itself failed: exit code, signal, exception
    MEMORY = "memory"  # it used more memory than it asked for, or than there was
    TIME = "time"  # it took longer than it asked for
    OUTPUT = "output"  # a declared output was missing or could not be stored
    CLEANUP = "cleanup"  # its processes could not be killed, or its folder could not be cleaned
    CANCELLED = "cancelled"  # somebody cancelled it
    FLOW = "flow"  # thrown by the flow itself, or an expression that could not be evaluated


class AttemptStage(StrEnum):
    """How far an attempt had come when it failed."""

    SUBMISSION = "submission"  # being submitted
    STAGE_IN = "stage-in"  # its files, or its code, were being fetched
    START = "start"  # its folder was being created, its process started, its function loaded
    EXECUTION = "execution"
    STAGE_OUT = "stage-out"  # its results were being checked or stored
    CLEANUP = "cleanup"  # it had ended, and what it left behind could not be removed


REJECTED: Final = "rejected"
"""What a user task throws that a person has rejected, or whose deadline has passed."""

INFRASTRUCTURE_CATEGORIES = frozenset({Category.NETWORK, Category.SCHEDULER_DOWN, Category.RESOURCE})
"""Faults of these categories are not the job's own and do not count against its retries."""


CANCELLED_WORDS: Final = "cancelled"
REMOVED_WORDS: Final = "it was removed"
"""How messages begin that say that somebody cancelled a job, or removed an item that had not begun."""


def asked_for_by(who: str) -> str:
    """The reason of what was cancelled without a word about why, whether a person or an exlet did it."""
    return f"asked for by {who}"


def with_reason(words: str, reason: str) -> str:
    return f"{words}: {reason}" if reason else words


def reason_in(message: str) -> str:
    """The reason that somebody gave, in a message that begins with such words; any other message as it is."""
    for words in (CANCELLED_WORDS, REMOVED_WORDS):
        if message == words or message.startswith(f"{words}: "):
            return message[len(words) + 2 :]
    return message


class Fault(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What went wrong: a name that handlers catch by, the category, a sentence, and what was measured.

    `stage` is one of Stage, or empty outside of attempts; `file` is the path, in the job's folder, of the file that it
    is about. `data` says, by the name: of memoryLimit and memoryKilled `peak_bytes` and `limit_bytes`; of timeLimit
    `ran_ms` and `limit_ms`; of signal the signal's `signal` by its name; of an exception its `type` and, nearest first,
    the `types` that it is also of; of missingInput the `source` that was tried, the `others` that were not, and the
    `reason`; of diskFull `free_bytes` and `folder`; of cannotStart `errno`, by its name; of notCleaned what was
    `left`; of lost, if its pilot has left and said why, that word as `left`. `lasting` in it: the same again fails the
    same way, until somebody has changed something where it failed.

    `rejected_by` is who rejected the user task that this came of: a decision of a person, and nothing that broke. Only
    the end of a user task sets it, so no flow can throw it. It is empty of a task whose deadline has passed."""

    name: str
    category: Category
    message: str
    data: Value = None
    exit_code: int | None = None
    signal: int | None = None
    log_tail: str = ""
    stage: str = ""
    file: str = ""
    rejected_by: str = ""

    @property
    def infrastructure(self) -> bool:
        return self.category in INFRASTRUCTURE_CATEGORIES

    @property
    def lasting(self) -> bool:
        return isinstance(self.data, dict) and self.data.get("lasting") is True
