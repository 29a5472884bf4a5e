"""Administration tasks on the screen: who asks, the scenario, what is suggested, and what came of it."""

from collections.abc import Sequence

from mendflow.cli.printing import print_table, say
from mendflow.core.model.repair_views import AdministrationOutcome, AdministrationTaskView
from mendflow.core.model.rules import rule_text
from mendflow.pages.formatting import one_line, plain_text, short_time_text

SCENARIO_CHARS_MAX = 300


def list_administration_tasks(views: Sequence[AdministrationTaskView]) -> None:
    if not views:
        say("Nobody is asked to handle anything; mendflow worklist administration --all lists what was handled.")
        return
    print_table(("of", "asked by", "since", "state", "outcome", "scenario"), map(_row, views), fold=-1)
    say("more of one: mendflow worklist administration " + (views[0].id if len(views) == 1 else "TASK"))
    if len(views) > 1:
        for view in views:
            say(f"  {view.about}: {view.id}")


def show_administration_task(view: AdministrationTaskView) -> None:
    say(f"{view.id} {view.kind}, {view.state}")
    say(f"  of:         {view.about}, flow {view.flow}")
    say(f"  asked by:   {view.asked_by}, {short_time_text(view.asked_at)}")
    say(f"  scenario:   {plain_text(view.scenario)}")
    say(f"  suggestion: {plain_text(view.suggestion)}")
    if view.outcome is not None:
        at = f", {short_time_text(view.outcome.at)}" if view.outcome.at else ""
        by = f" by {view.outcome.by}" if view.outcome.by else ""
        say(f"  outcome:    {outcome_text(view.outcome)}{by}{at}")
        if view.outcome.note:
            say(f"              {plain_text(view.outcome.note)}")


def outcome_text(outcome: AdministrationOutcome) -> str:
    """What was done, by which rule if one was made or found, and what came of it."""
    if outcome.replaced_by:
        return f"replaced by {outcome.replaced_by}"
    rule = f" ({rule_text(outcome.rules, outcome.rule)})" if outcome.rule is not None else ""
    return ": ".join(part for part in (f"{outcome.exlet}{rule}", outcome.result or "it runs") if part)


def _row(view: AdministrationTaskView) -> tuple[str, ...]:
    return (
        view.about,
        view.asked_by,
        short_time_text(view.asked_at),
        view.state,
        outcome_text(view.outcome) if view.outcome is not None else "",
        one_line(view.scenario, SCENARIO_CHARS_MAX),
    )
