"""What learning takes from jobs that do not fail: the same work with and without it, in turns, in one run.

`python -m bench.learning_share [SECONDS]` takes about so long, and ends with a verdict on the throughput. End to end:
two servers as they are used, each with its pilot, do the same case in turns; one counts what ends and learns sizes, the
other does not. In one process: two servers on stores in memory and a pilot that ends every job at once say how many
microseconds learning takes. bench/proxy.py does the same for recovery."""

import sys
from collections.abc import Sequence

from bench.pairs import MedianEstimate, Pair, median_estimate
from bench.proxy import JOBS, end_to_end, in_one_process
from mendflow.event_loop import run
from mendflow.services.runtime.server import ServerSettings

SECONDS = 140.0
SHARE_MAX = 0.02


def verdict(outside: Sequence[tuple[Pair, ...]], inside: Sequence[Pair]) -> str:
    wall, processor = (median_estimate([both[which].share for both in outside]) for which in (0, 1))
    jobs_per_s = 1 / median_estimate([both[0].with_it for both in outside]).value
    took_us = median_estimate([both[1].with_it * 1e6 for both in outside]).value
    more_us = median_estimate([each.more * 1e6 for each in inside])
    said = "is" if wall.high < SHARE_MAX else "is not shown to be"
    return "\n".join(
        [
            f"end to end, {len(outside)} pairs of {JOBS:,} jobs, {jobs_per_s:,.0f} jobs a second:",
            f"  throughput  {_shares(wall)}",
            f"  processor   {_shares(processor)} of the server's {took_us:.0f} us a job",
            f"in one process, {len(inside)} pairs of {JOBS:,} jobs:",
            f"  processor   {more_us.value:.1f} us ({more_us.low:.1f} to {more_us.high:.1f}) a job",
            f"The throughput that learning takes from jobs that do not fail {said} less than {SHARE_MAX:.0%}.",
        ]
    )


def _shares(found: MedianEstimate) -> str:
    return f"{found.value:.1%} ({found.low:.1%} to {found.high:.1%})"


def main(words: Sequence[str]) -> int:
    seconds = float(words[0]) if words else SECONDS
    inside = run(in_one_process(seconds * 0.3, settings=lambda kind: ServerSettings(learning=kind)))
    print(verdict(end_to_end(seconds * 0.6, part="learning"), inside))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
