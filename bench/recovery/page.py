"""docs/understand/failure-scenarios.md, whole."""

from collections.abc import Sequence

from bench.recovery.strategies import HOUSE, PLAIN, STRATEGIES
from bench.recovery.table import Row, cells, compared, heads, ruled, summed

INTRODUCTION = """\
# Failure scenarios

What becomes of the same trouble with no recovery, with plain retries, and with the default rules.
`python -m bench.recovery --write` made this page; tests/recovery plays the same scenarios and holds the default rules
to what it says here.

The world of a scenario is virtual in time and otherwise the product itself: engine, queue, proxy, rules, exlets and
levels run as they do in a server. Three hosts run the jobs, two of 16 GiB and one of 64 GiB, with two slots each. What
a job truly needs, which host is broken and until when is given; each strategy meets the same world.

- **none**: a failure is the end, and so is the loss of a pilot.
- **plain retry**: whatever the failure is, the same again, three times, after 10, 20 and 40 s. A job whose pilot is
  lost is given to another one, up to twenty times, without spending its retries.
- **default rules**: no retries are asked for; [the default rules](../do/recovery.md) decide.

A job takes a minute unless the scenario says otherwise, and asks for 2 GiB and 100 s. *Attempts* counts what was begun,
or refused, beyond one for each job. *s lost* is the time beyond what the work takes in fair weather; of a case that
failed it is the time until that was known. The levels wait 1 min, 10 min and 1 h.
"""


def page(rows: Sequence[Row]) -> str:
    curable = [row for row in rows if row.scenario.curable]
    hopeless = [row for row in rows if not row.scenario.curable]
    return "\n".join(
        [
            INTRODUCTION,
            "## In one view",
            "",
            *ruled(summed(rows, STRATEGIES)),
            "",
            compared(rows, PLAIN, HOUSE),
            "",
            "## What can be cured",
            "",
            *ruled([heads(STRATEGIES), *(cells(row, STRATEGIES) for row in curable)]),
            "",
            "The one that the default rules leave alone is a job that fails by itself, with an exit code: only its",
            "author knows whether to run it twice, and says so by `retries`.",
            "",
            "## What cannot",
            "",
            "Nothing helps here; what counts is that it is known soon, and that little was spent on it. What looks as",
            "if it might pass is tried through all levels first, which takes 71 minutes.",
            "",
            *ruled([heads(STRATEGIES), *(cells(row, STRATEGIES) for row in hopeless)]),
            "",
        ]
    )
