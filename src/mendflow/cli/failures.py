"""Failures by cause, over all cases: how often each occurs, and which rule handled it."""

import re
import time
from typing import Annotated

import typer
from rich.text import Text

from mendflow.cli.command_context import CommandContext, with_context
from mendflow.cli.list_options import Limit, OfFlow
from mendflow.cli.options import complete_from_server
from mendflow.cli.printing import print_json, print_table, say, state_text
from mendflow.cli.rule_differences import compared_with, say_differences
from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.ids import Instant
from mendflow.core.model.repair import TOLD, ExceptionType
from mendflow.core.model.repair_views import DecisionView, FailureGroup, FailureView, HandlingCount
from mendflow.core.model.rule_views import DifferencesView
from mendflow.core.model.rules import rule_text
from mendflow.core.model.units import DURATION_EXAMPLES, duration_ms
from mendflow.core.recovery.repeat_bounds import JOB_BOUND, bounded
from mendflow.pages.formatting import count_text, duration_text, one_line, short_time_text

app = typer.Typer()
failures_app = typer.Typer(no_args_is_help=False, invoke_without_command=True)
app.add_typer(failures_app, name="failures", help="List failures by their cause, and what was done about them.")

SAMPLES_FIRST, CONDITIONS_FIRST = 3, 4
"""How many are shown unless everything is asked for."""

SAMPLES_SHOWN = 20
VALUES_SHOWN = 12
NO_RULE = "no rule fits"

Since = Annotated[
    str,
    typer.Option("--since", metavar="TIME", help="Only failures of the last 1d, 90 min, ...", show_default=False),
]
GroupArgument = Annotated[
    str,
    typer.Argument(
        metavar="GROUP", help="A group's id, or its beginning.", autocompletion=complete_from_server("groups")
    ),
]


@failures_app.callback()
@with_context
def failures(context: CommandContext, since: Since = "", flow: OfFlow = "", limit: Limit = 50) -> None:
    """List failures by their cause, and what was done about them."""
    if context.inner:
        return
    start = since_at(since)
    groups = context.run(lambda client: client.failures(since=start, flow=flow, limit=limit))
    if context.json:
        print_json(groups)
    elif not groups:
        say("Nothing has failed.")
    else:
        now = int(time.time() * 1000)
        print_table(("group", "count", "since", "last", "kind", "handled", "cause"), [_row(g, now) for g in groups])
        waiting = sum(group.waiting for group in groups)
        if waiting:
            say(f"{count_text(waiting, 'failure')} wait for a person: mendflow failures show GROUP", err=True)


@failures_app.command("show")
@with_context
def show(
    context: CommandContext,
    group: GroupArgument,
    every: Annotated[
        bool, typer.Option("--all", help="All that is known: more failures, their values, all conditions.")
    ] = False,
) -> None:
    """Show one group of failures: the newest, and conditions for a rule."""
    view = context.run(lambda client: client.failure(group))
    if context.json:
        print_json(view)
    else:
        _show(view, every=every)


def since_at(text: str) -> Instant:
    """The moment that long ago; 0 if none is given."""
    if not text:
        return 0
    ago = duration_ms(text)
    if ago is None:
        raise InvalidRequest(f"--since {text!r} is not a length of time; write it like {DURATION_EXAMPLES}")
    return max(int(time.time() * 1000) - ago, 1)


def is_group(text: str) -> bool:
    """Whether a word names a group rather than a decision."""
    return re.fullmatch(r"[0-9a-f]{1,8}", text) is not None


def _row(group: FailureGroup, now: Instant) -> tuple[str | Text, ...]:
    return (
        group.id,
        f"{group.count:,}",
        short_time_text(group.first_at)[5:16],
        f"{duration_text(max(now - group.last_at, 0))} ago",
        _kind(group),
        handled_text(group),
        group.message,
    )


def _kind(group: FailureGroup) -> str:
    """Of failures of jobs the category; of other exceptions also what they are."""
    if group.type is ExceptionType.ABORT:
        return group.category or "failure"
    return f"{group.type.value}/{group.category}" if group.category else group.type.value


def handled_text(group: FailureGroup) -> str:
    """bigger-memory: 41 recovered, 3 without success; nobody took up: 4; 2 wait."""
    acted = [handling for handling in group.handled if not handling.passive]
    parts = [handling_text(handling) for handling in acted[:1]]
    if len(acted) > 1:
        parts.append(f"{len(acted) - 1} more")
    if group.unhandled:
        parts.append(f"nobody took up: {group.unhandled:,}")
    if group.run_again:
        parts.append(f"run again: {group.run_again:,}")
    if group.settled:
        parts.append(f"settled: {group.settled:,}")
    if group.rejected:
        parts.append(f"a person rejected {group.rejected:,}")
    if group.waiting:
        parts.append(f"{group.waiting:,} wait")
    tried = sum(handling.count for handling in group.handled if handling.passive)
    if tried:
        parts.append(f"on trial: {tried:,}")
    return "; ".join(parts) or "-"


def handling_text(handling: HandlingCount) -> str:
    words = {"failed": "without success", TOLD: "only told to a person"}
    results = ", ".join(f"{number:,} {words.get(result, result)}" for result, number in handling.results.items())
    return f"{handling.exlet}: {results}"


def _show(view: FailureView, *, every: bool) -> None:
    group = view.group
    say(Text.assemble((group.id, "bold"), f" {_kind(group)}: {one_line(group.message, 300)}"))
    since, last = short_time_text(group.first_at), short_time_text(group.last_at)
    say(f"  {count_text(group.count, 'failure')} in {count_text(group.cases, 'case')}, from {since} to {last}")
    say(f"  flows: {', '.join(group.flows)}" + (f"; tasks: {', '.join(group.tasks)}" if group.tasks else ""))
    for handling in group.handled:
        if not handling.rules and "tried again" in handling.results:
            say(f"  {count_text(handling.count, 'time')} the queue retried by itself")
            continue
        if handling.passive:
            would = f"{rule_text(handling.rules, handling.rule)}, on trial, would have done {handling.exlet}"
            say(f"  {count_text(handling.count, 'time')} {would}")
            continue
        by = rule_text(handling.rules, handling.rule) if handling.rules else "a person"
        say(f"  {count_text(handling.count, 'time')} {by} chose {handling_text(handling)}")
    if group.unhandled:
        say(f"  {count_text(group.unhandled, 'time')} nobody took it up")
    if group.run_again:
        say(f"  {count_text(group.run_again, 'time')} no rule fitted it, and somebody has run the case again since")
    if group.settled:
        say(f"  {count_text(group.settled, 'time')} no rule fitted it, and the case completed or was cancelled")
    if group.rejected:
        say(f"  {count_text(group.rejected, 'time')} a person rejected a user task, and the case ended by that")
    say("newest:")
    shown = view.samples[: SAMPLES_SHOWN if every else SAMPLES_FIRST]
    print_table(("at", "decision", "item", "state", "fault"), [_sample(each) for each in shown])
    if every:
        _show_values(view)
    _show_candidates(view, every=every)
    _show_next(view, every=every)


def _sample(decision: DecisionView) -> tuple[str | Text, ...]:
    fault = decision.fault.message if decision.fault else decision.note
    is_taken_up = decision.rule is not None or decision.ordered_by
    state = state_text(decision.state) if is_taken_up or decision.state != "ignored" else Text(NO_RULE)
    return short_time_text(decision.at), decision.id, decision.shown, state, fault


def _show_values(view: FailureView) -> None:
    if not view.values:
        return
    say(f"typical values, in how many of {count_text(len(view.samples), 'sample')}:")
    for path, values in list(view.values.items())[:VALUES_SHOWN]:
        text = ", ".join(f"{one_line(value, 60)} ({number})" for value, number in list(values.items())[:4])
        say(f"  {path}: {text}")


def _show_compared(compared: DifferencesView | None) -> None:
    if compared is not None and compared.differences:
        say(f"the newest differs from {compared_with(compared)} in:")
        say_differences(compared.differences)


def _show_candidates(view: FailureView, *, every: bool) -> None:
    if view.candidates:
        say("conditions that separate these from other failures, and from jobs that ended well:")
    for candidate in view.candidates[: VALUES_SHOWN if every else CONDITIONS_FIRST]:
        say(f"  {candidate.condition}" + (f"    {candidate.reason}" if candidate.reason else ""))
    if every:
        _show_compared(view.compared)


def _show_next(view: FailureView, *, every: bool) -> None:
    example = bounded(view.candidates[0].condition) if view.candidates else "CONDITION"
    say(f"try a rule:  mendflow rules try --from {view.group.id} --if '{example}'")
    say(f"make it:     mendflow rules add --from {view.group.id} --if '{example}' --exlet EXLET")
    say("EXLET is a name that mendflow rules show '*' lists at its end, or steps, as '{re-submit: {memory: 4 GB}}'")
    if not every:
        say(f"all of it:   mendflow failures show {view.group.id} --all")
    elif example.endswith(JOB_BOUND):
        say(f"`{JOB_BOUND}` ends the repair of a job that fails each time; other exlets than re-submit can do without")
