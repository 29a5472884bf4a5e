"""`python -m bench.recovery` plays all scenarios in virtual time and prints the table; `--write` makes the page too."""

import sys
from pathlib import Path

from bench.recovery.page import page
from bench.recovery.scenarios import SCENARIOS
from bench.recovery.strategies import HOUSE, PLAIN, STRATEGIES
from bench.recovery.table import PAGE, cells, compared, heads, measure, summed, text

ROOT = Path(__file__).resolve().parents[2]


def main(words: list[str]) -> int:
    """What is given besides options is looked for in the names of scenarios."""
    options = {word for word in words if word.startswith("--")}
    named = [word for word in words if not word.startswith("--")]
    rows = measure([one for one in SCENARIOS if not named or any(word in one.name for word in named)])
    print(text([heads(STRATEGIES), *(cells(row, STRATEGIES) for row in rows)]))
    print()
    print(text(summed(rows, STRATEGIES)))
    print()
    print(compared(rows, PLAIN, HOUSE))
    if "--write" in options:
        (ROOT / PAGE).write_text(page(rows))
    return 0


sys.exit(main(sys.argv[1:]))
