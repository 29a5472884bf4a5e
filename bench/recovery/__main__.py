"""`python -m bench.recovery` plays all scenarios in virtual time and prints the table; `--write` makes the page too.
`--learn` learns from half of them, with the default rules emptied, and plays the other half;
then the other way round. `--learn --past` plays those that were learned from. `--learn 7` divides them by chance, with
7 as the seed, and each further number once more."""

import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.recovery.learned import halves, learn_from, worse_than
from bench.recovery.page import page
from bench.recovery.scenario import Scenario
from bench.recovery.scenarios import SCENARIOS
from bench.recovery.strategies import HOUSE, NONE, PLAIN, STRATEGIES
from bench.recovery.table import PAGE, cells, compared, heads, measure, summed, text

ROOT = Path(__file__).resolve().parents[2]


def main(words: list[str]) -> int:
    """What is given besides options is looked for in the names of scenarios."""
    options = {word for word in words if word.startswith("--")}
    if "--learn" in options:
        if seeds := [int(word) for word in words if word.isdigit()]:
            for seed in seeds:
                print(f"Divided with seed {seed}:\n")
                learn(*halves(SCENARIOS, seed))
            return 0
        past, test = halves(SCENARIOS)
        learn(past, past if "--past" in options else test)
        if "--past" not in options:
            print("\n\nThe other way round:\n")
            learn(test, past)
        return 0
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


def learn(past: Sequence[Scenario], test: Sequence[Scenario]) -> None:
    """Learn from some scenarios, and play others."""
    learned = learn_from(past)
    print(f"{len(past)} scenarios are the past: {learned.plays} plays in {learned.rounds} rounds. Adopted, in order:")
    for each in learned.adopted:
        print(f"  {each.kind}: {each.message} -> {each.exlet or 'nothing'}\n      if {each.condition}")
    strategies = (NONE, PLAIN, HOUSE, learned.strategy)
    rows = measure(test, strategies)
    print(f"\n{len(test)} scenarios" + (", the same:" if test is past else ", which nothing was learned from:") + "\n")
    print(text([heads(strategies), *(cells(row, strategies) for row in rows)]))
    print()
    print(text(summed(rows, strategies)))
    worse = worse_than(rows, learned.strategy, PLAIN)
    print("\nover 5 % more attempts than plain retry, or not cured where that cures:", *(worse or ["none"]), sep="\n  ")


logging.disable(logging.WARNING)
sys.exit(main(sys.argv[1:]))
