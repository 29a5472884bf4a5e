"""What is held for a person because no rule knows it, with the commands that take it on."""

from collections.abc import Sequence

from mendflow.cli.printing import print_table, say
from mendflow.core.model.repair_views import DecisionView
from mendflow.pages.formatting import one_line, short_time_text


def show_held(waiting: Sequence[DecisionView]) -> None:
    """A table, and below it what can be done about each."""
    say("held for a person, because no rule knows it:")
    print_table(("held", "since", "group", "why"), map(_row, waiting), fold=-1)
    failed = [each for each in waiting if not each.trigger]
    case = str(waiting[0].case) if len({each.case for each in waiting}) == 1 else "CASE"
    group = failed[0].group if failed and len({each.group for each in failed}) == 1 else "GROUP"
    if failed:
        say(f"  mendflow failures show {group} is where you can teach a rule")
        say(f"  mendflow rules apply {group} applies the rules that there are to all of it")
        say(f"  mendflow resume {case} tries again what failed, as it is")
    say(f"  mendflow mend {case} --exlet EXLET mends it on the spot; mendflow cancel {case} ends it")


def _row(held: DecisionView) -> tuple[str, ...]:
    raised = f"{held.trigger!r} was raised" if held.trigger else "it failed"
    return (
        f"{held.case}:{held.shown}" if held.item else str(held.case),
        short_time_text(held.at),
        held.group,
        one_line(held.fault.message, 300) if held.fault is not None else raised,
    )
