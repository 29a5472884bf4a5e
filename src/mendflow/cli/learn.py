"""Commands about learning: what failures have cost, and what is adopted by itself."""

from typing import Annotated

import msgspec
import typer

from mendflow.cli.command_context import CommandContext, with_context
from mendflow.cli.failures import since_at
from mendflow.cli.printing import print_answer, print_json, print_table, say
from mendflow.core.learning.usage import HOUR_MS
from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.learning import (
    PROPOSAL_KINDS,
    AdoptionPolicy,
    LearningReport,
    LearningSettings,
    LostTime,
    ProposalKind,
)
from mendflow.pages.formatting import duration_text, memory_time_text, short_time_text

app = typer.Typer()

LOST_SHOWN = 20
POLICIES: tuple[AdoptionPolicy, ...] = ("ask", "on-trial", "in-force")


@app.command("report")
@with_context
def report(
    context: CommandContext,
    since: Annotated[
        str, typer.Option("--since", metavar="TIME", help="As 7d or 12h: from that day on.", show_default=False)
    ] = "",
    flow: Annotated[str, typer.Option("--flow", metavar="FLOW", help="Of this flow only.", show_default=False)] = "",
    recount: Annotated[bool, typer.Option("--recount", help="Count the whole store again first.")] = False,
) -> None:
    """Report what failed attempts, over-asking and waits cost, and what adopted proposals have saved."""
    start = since_at(since)
    if recount:
        counted = context.run(lambda client: client.recount_learning())
        say(f"counted {counted.jobs:,} jobs and {counted.decisions:,} decisions", err=True)
    found = context.run(lambda client: client.learning_report(since=start, flow=flow))
    if context.json:
        print_json(found)
    else:
        _show(found)


@app.command("settings")
@with_context
def settings(
    context: CommandContext,
    adopt: Annotated[
        list[str] | None,
        typer.Option(
            "--adopt",
            metavar="KIND=HOW",
            help=f"Of {', '.join(PROPOSAL_KINDS)}: {', '.join(POLICIES)}.",
            show_default=False,
        ),
    ] = None,
    promote_after: Annotated[
        int | None,
        typer.Option("--promote-after", metavar="N", min=0, help="Decisions that agree; 0: never.", show_default=False),
    ] = None,
    failures_min: Annotated[
        int | None,
        typer.Option("--failures", metavar="N", min=1, help="Before a repair is proposed.", show_default=False),
    ] = None,
) -> None:
    """Show what is adopted by itself, or change it."""
    known = context.run(lambda client: client.learning_settings())
    wanted = msgspec.structs.replace(
        known,
        adopt={**known.adopt, **dict(map(_policy, adopt or []))},
        promote_after=known.promote_after if promote_after is None else promote_after,
        failures_min=known.failures_min if failures_min is None else failures_min,
    )
    if wanted != known:
        known = context.run(lambda client: client.put_learning_settings(wanted), changes=True)
    print_answer(context.json, known, _settings_text(known))


def _policy(text: str) -> tuple[ProposalKind, AdoptionPolicy]:
    kind, _, policy = text.partition("=")
    if kind not in PROPOSAL_KINDS or policy not in POLICIES:
        raise InvalidRequest(
            f"--adopt {text!r:.80}: write KIND=HOW, KIND one of {', '.join(PROPOSAL_KINDS)}, HOW one of"
            f" {', '.join(POLICIES)}"
        )
    return kind, policy


def _settings_text(known: LearningSettings) -> str:
    by_itself = [f"{kind}: {policy}" for kind, policy in known.adopt.items() if policy != "ask"]
    promoted = (
        f"after {known.promote_after} decisions that agree a rule on trial is put in force"
        if known.promote_after
        else "a rule on trial stays there until a person puts it in force"
    )
    return (
        f"adopted without a person: {', '.join(by_itself) or 'nothing'}\n{promoted}\nproposed after"
        f" {known.failures_min} failures, {known.by_hand_min} repairs by hand, {known.tries_min} repairs that failed"
    )


def _show(found: LearningReport) -> None:
    since = f" since {short_time_text(found.since)[:10]}" if found.since else ""
    say(f"{found.jobs:,} jobs in {found.attempts:,} attempts{since}")
    say(f"useful: {_amount_text(found.useful_hours, found.useful_gb_hours)}")
    for loss in ("failed attempts", "over-asking", "waits"):
        rows = [each for each in found.lost if each.loss == loss]
        hours, gb_hours = sum(each.hours for each in rows), sum(each.gb_hours for each in rows)
        say(f"lost to {loss}: {_amount_text(hours, gb_hours)}")
    if found.lost:
        rows = sorted(found.lost, key=lambda each: (-each.hours, -each.gb_hours))[:LOST_SHOWN]
        print_table(("flow", "lost to", "count", "time", "memory x time", "cause"), [_row(each) for each in rows])
    if found.saved:
        say("adopted proposals since:")
        heads = ("proposal", "since", "fired", "cured", "saved", "what")
        print_table(
            heads,
            [
                (
                    each.proposal,
                    short_time_text(each.since),
                    f"{each.fired:,}",
                    f"{each.cured:,}",
                    _time_text(each.hours),
                    each.sentence,
                )
                for each in found.saved
            ],
        )


def _row(lost: LostTime) -> tuple[str, ...]:
    memory = memory_time_text(lost.gb_hours) if lost.gb_hours else "-"
    return lost.flow, lost.loss, f"{lost.count:,}", _time_text(lost.hours), memory, lost.cause


def _amount_text(hours: float, gb_hours: float) -> str:
    return f"{duration_text(hours * HOUR_MS)}, {memory_time_text(gb_hours)}"


def _time_text(hours: float) -> str:
    return duration_text(hours * HOUR_MS) if hours else "-"
