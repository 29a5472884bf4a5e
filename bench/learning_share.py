"""What learning takes from jobs that do not fail: the same work with and without it, in turns, in one process.

`python -m bench.learning_share [SECONDS]` takes about so long. Two servers on stores in memory do the same jobs, which
a pilot ends at once; one counts what ends and learns sizes, the other does not. Counted is processor time, as other
programs on the machine do not count in that; the least of many rounds of each is what the work itself takes, and the
middle of the pairs says how sure that is."""

import sys
from collections.abc import Sequence

from bench.pairs import Pair, median_estimate
from bench.proxy import JOBS, in_one_process
from mendflow.event_loop import run
from mendflow.services.runtime.server import ServerSettings

SECONDS = 60.0
SHARE_MAX = 0.02


def verdict(found: Sequence[Pair]) -> str:
    least = Pair(min(each.without for each in found), min(each.with_it for each in found))
    middle = median_estimate([each.share for each in found])
    said = "is" if least.share < SHARE_MAX else "is not"
    return "\n".join(
        [
            f"{len(found)} pairs of {JOBS:,} jobs in one process, processor time a job:",
            f"  the least   {least.without * 1e6:.1f} us, with it {least.with_it * 1e6:.1f} us: {least.share:.1%}",
            f"  the middle  {middle.value:.1%} ({middle.low:.1%} to {middle.high:.1%})",
            f"What learning takes from jobs that do not fail {said} less than {SHARE_MAX:.0%}.",
        ]
    )


def main(words: Sequence[str]) -> int:
    seconds = float(words[0]) if words else SECONDS
    print(verdict(run(in_one_process(seconds, settings=lambda kind: ServerSettings(learning=kind)))))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
