"""Resource limits of a job: for a command its shell sets them before it starts, for a function call the worker sets
them around it.

A limit that is already tighter stays: it cannot be raised, and the job is bounded."""

import resource
import time
from collections.abc import Iterator
from typing import NamedTuple

from mendflow.core.model.jobs import Limits

_NO_LIMITS = Limits()


class Limit(NamedTuple):
    """The resource, the shell's option, the amount, and the shell's unit."""

    kind: int
    letter: str
    requested: int
    unit: int = 1


def requested(limits: Limits) -> Iterator[Limit]:
    """The limits that a job asks for."""
    every = (
        Limit(resource.RLIMIT_NOFILE, "n", limits.open_files),
        Limit(resource.RLIMIT_FSIZE, "f", limits.file_bytes, 512),
        Limit(resource.RLIMIT_NPROC, "p", limits.processes),
        Limit(resource.RLIMIT_CPU, "t", -(-limits.cpu_ms // 1000)),
        Limit(resource.RLIMIT_STACK, "s", limits.stack_bytes, 1024),
        Limit(resource.RLIMIT_DATA, "d", limits.data_bytes, 1024),
        Limit(resource.RLIMIT_MEMLOCK, "l", limits.locked_bytes, 1024),
        Limit(resource.RLIMIT_AS, "v", limits.virtual_bytes, 1024),
    )
    yield from (each for each in every if each.requested)
    if limits.core_bytes is not None:
        yield Limit(resource.RLIMIT_CORE, "c", limits.core_bytes, 512)


def shell_limits(limits: Limits) -> str:
    """Shell commands that set the limits before the job's command."""
    text = ""
    for limit in requested(limits):
        amount = -(-_within(limit.requested, limit.kind) // limit.unit)
        if limit.letter == "p":  # some shells use another option
            text += f"ulimit -p {amount} 2>/dev/null || ulimit -u {amount} || exit 125\n"
        else:
            text += f"ulimit -{limit.letter} {amount} || exit 125\n"
    return text


def lower_soft_limits(limits: Limits) -> list[tuple[int, tuple[int, int]]]:
    """Lower the soft limits of this process for a call; returns the old ones. CPU time that earlier calls used does not
    count."""
    if limits == _NO_LIMITS:
        return []
    before = []
    for limit in requested(limits):
        soft, hard = resource.getrlimit(limit.kind)
        spent = int(time.process_time()) + 1 if limit.kind == resource.RLIMIT_CPU else 0
        before.append((limit.kind, (soft, hard)))
        resource.setrlimit(limit.kind, (_within(limit.requested + spent, limit.kind), hard))
    return before


def _within(amount: int, kind: int) -> int:
    hard = resource.getrlimit(kind)[1]
    return amount if hard == resource.RLIM_INFINITY else min(amount, hard)
