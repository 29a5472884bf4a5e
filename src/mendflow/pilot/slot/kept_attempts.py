"""The folder of a failed attempt stays for a while, so that somebody can look into it.

It stays where it was, since what the job has written may name its own path. A file beside it says that it is kept, and
what its job was run with: `mendflow shell` starts a shell with just that. What may be a secret is not written down: the
file has the names of such variables, and no values."""

import os
from collections.abc import Collection, Mapping

import msgspec

from mendflow.core.model.faults import Category, Fault
from mendflow.core.recovery.redaction import is_secret_variable
from mendflow.pilot.slot.messages import FunctionCall

KEPT_SUFFIX = ".kept"
WORTH_A_LOOK = frozenset({Category.JOB, Category.MEMORY, Category.TIME, Category.OUTPUT})
"""Faults whose reason may lie in the folder. What was cancelled, lost or never begun has nothing to show."""

DISK_FILLED = "diskFilled"


class KeptAttempt(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`env` is the environment of the job without its secrets, whose names are in `secrets`. Only its owner can read
    this file."""

    job: str
    item: str
    number: int
    folder: str
    fault: str
    command: str = ""
    env: dict[str, str] = {}
    secrets: list[str] = []


def is_worth_keeping(fault: Fault | None) -> bool:
    return fault is not None and fault.category in WORTH_A_LOOK and fault.name != DISK_FILLED


def mark_kept(kept: KeptAttempt) -> bool:
    """False if that cannot be written, as on a full disk: then the folder is not kept either."""
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(kept.folder + KEPT_SUFFIX, flags, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(msgspec.json.encode(kept))
    except OSError:
        return False
    return True


def read_kept(folder: str) -> KeptAttempt | None:
    """What a kept folder says of its attempt; None if it is not kept, or not any more."""
    try:
        descriptor = os.open(folder + KEPT_SUFFIX, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        with os.fdopen(descriptor, "rb") as file:
            return msgspec.json.decode(file.read(), type=KeptAttempt)
    except (OSError, msgspec.MsgspecError):
        return None


def kept_call(call: FunctionCall, fault: Fault, environment: Mapping[str, str]) -> KeptAttempt:
    return KeptAttempt(
        job=call.job,
        item=call.item,
        number=call.number,
        folder=call.attempt_folder,
        fault=fault.message,
        command=f"{call.module}.{call.name}",
        env=writable(environment, call.secrets),
        secrets=secret_names(environment, call.secrets),
    )


def writable(environment: Mapping[str, str], secret: Collection[str] = ()) -> dict[str, str]:
    """The variables that may be written down: no secrets, and text only, as a system allows any bytes in them. `secret`
    are those that the job got as secrets."""
    return {
        name: value
        for name, value in environment.items()
        if _is_text(name) and _is_text(value) and name not in secret and not is_secret_variable(name, value)
    }


def secret_names(environment: Mapping[str, str], secret: Collection[str] = ()) -> list[str]:
    return sorted(
        name
        for name, value in environment.items()
        if _is_text(name) and (name in secret or is_secret_variable(name, value))
    )


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
