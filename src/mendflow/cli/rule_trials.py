"""Prints the result of a rule's trial on past failures."""

from mendflow.cli.printing import say
from mendflow.core.model.repair_views import TrialEntry, TrialView
from mendflow.pages.formatting import count_text, one_line

TRIED_SHOWN = 10


def say_trial(trial: TrialView) -> None:
    """would have caught 41 of 52, and 3 that were handled otherwise."""
    more = f", and {count_text(len(trial.otherwise), 'one', 'that were')} handled otherwise"
    if len(trial.otherwise) == 1:
        more = ", and 1 that was handled otherwise"
    say(f"would have caught {trial.caught:,} of {trial.of:,}" + (more if trial.otherwise else ""))
    _say_tried("caught", trial.caught_ids)
    _say_tried("not caught", trial.missed_ids)
    _say_tried("handled otherwise", trial.otherwise)
    if trial.breaks:
        say(f"it cannot be added in this form: {one_line(trial.breaks, 400)}")


def _say_tried(title: str, tried: list[TrialEntry]) -> None:
    if not tried:
        return
    say(f"{title}:")
    for one in tried[:TRIED_SHOWN]:
        was = f"{one.exlet}, {one.result or one.state}" if one.exlet else one.state
        say(f"  {one.decision}  ({was})")
    if len(tried) > TRIED_SHOWN:
        say(f"  and {len(tried) - TRIED_SHOWN:,} more; --json has them all")
