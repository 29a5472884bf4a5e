"""What a process and its ended children have used so far, as the system counts it."""

import resource
import sys
from typing import Final, NamedTuple

from mendflow.pilot.slot.processes import BLOCK_BYTES

_RSS_UNIT: Final = 1 if sys.platform == "darwin" else 1024


class Usage(NamedTuple):
    """`peak_bytes` is the peak of this process alone."""

    cpu_us: int
    peak_bytes: int
    read_bytes: int
    written_bytes: int


def usage_so_far(*, with_children: bool = True) -> Usage:
    """Without its children, where there can be none: they cost a call of the system."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    cpu_s, blocks_in, blocks_out = own.ru_utime + own.ru_stime, own.ru_inblock, own.ru_oublock
    if with_children:
        below = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu_s += below.ru_utime + below.ru_stime
        blocks_in, blocks_out = blocks_in + below.ru_inblock, blocks_out + below.ru_oublock
    return Usage(int(cpu_s * 1_000_000), own.ru_maxrss * _RSS_UNIT, blocks_in * BLOCK_BYTES, blocks_out * BLOCK_BYTES)
