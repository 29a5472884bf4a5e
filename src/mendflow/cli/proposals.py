"""Commands about proposals: rules that the past suggests. List them, look at the evidence, adopt or dismiss one."""

from typing import Annotated

import typer
from rich.text import Text

from mendflow.cli.command_context import CommandContext, with_context
from mendflow.cli.printing import print_answer, print_json, print_table, say, state_text
from mendflow.core.model.learning import AdoptionRequest, DismissalRequest, Proposal, Rate, RepairRate
from mendflow.core.model.rules import DEFAULT_RULES, DEFAULT_RULES_SEEN, rule_text
from mendflow.pages.formatting import count_text, one_line, short_time_text

app = typer.Typer()
proposals_app = typer.Typer(invoke_without_command=True)
app.add_typer(proposals_app, name="proposals")

IDS_SHOWN = 5
OF_FAILURES = ("avoid", "retire")
"""Kinds whose rate is that of failures: how often a place failed, or a rule did not help."""
ProposalArgument = Annotated[str, typer.Argument(metavar="PROPOSAL", help="A proposal's id, or its beginning.")]


@proposals_app.callback()
@with_context
def proposals(
    context: CommandContext,
    every: Annotated[bool, typer.Option("--all", help="Also those in force, dismissed and outdated.")] = False,
) -> None:
    """List the rules that past failures suggest; show, adopt or dismiss one."""
    if context.inner:
        return
    found = context.run(lambda client: client.proposals(every=every))
    if context.json:
        print_json(found)
    elif not found:
        say(
            "There is nothing to propose: what has failed is handled, has not failed often enough, or no repair is"
            " known that is likely to help against it, as against most errors of a program itself."
        )
    else:
        print_table(("proposal", "kind", "state", "sure", "catches", "spoils", "what"), [_row(each) for each in found])
        say("mendflow proposals show PROPOSAL has the rule and its evidence", err=True)


@proposals_app.command("show")
@with_context
def show(context: CommandContext, proposal: ProposalArgument) -> None:
    """Show a proposed rule and its evidence: what it would have caught, and what it would have spoilt."""
    found = context.run(lambda client: client.proposal(proposal))
    if context.json:
        print_json(found)
    else:
        _show(found)


@proposals_app.command("adopt")
@with_context
def adopt(
    context: CommandContext,
    proposal: ProposalArgument,
    in_force: Annotated[bool, typer.Option("--in-force", help="In force at once, not on trial first.")] = False,
    promote_after: Annotated[
        int | None,
        typer.Option(
            "--promote-after",
            metavar="N",
            min=0,
            help="Put it in force by itself after N decisions that agree; 0: never.",
            show_default="as the settings say",
        ),
    ] = None,
    note: Annotated[str, typer.Option("--note", metavar="TEXT", help="Why.", show_default=False)] = "",
) -> None:
    """Make a proposal a rule: on trial, unless --in-force; one on trial is put in force by --in-force."""
    wish = AdoptionRequest(in_force=in_force, promote_after=promote_after, note=note)
    found = context.run(lambda client: client.adopt_proposal(proposal, wish))
    print_answer(context.json, found, _adopted(found))
    if found.rules == DEFAULT_RULES and found.kind != "retire":
        say(f"warning: {DEFAULT_RULES_SEEN}", err=True)


@proposals_app.command("dismiss")
@with_context
def dismiss(
    context: CommandContext,
    proposal: ProposalArgument,
    why: Annotated[str, typer.Option("--why", metavar="TEXT", help="Why; it is remembered.")],
) -> None:
    """Dismiss a proposal; the same is not proposed again unless there are clearly more failures."""
    found = context.run(lambda client: client.dismiss_proposal(proposal, DismissalRequest(why=why)))
    print_answer(
        context.json, found, f"{found.id} is dismissed; it is proposed again only if there are clearly more failures"
    )


def _adopted(found: Proposal) -> str:
    if found.kind == "retire":
        return f"{rule_text(found.rules, found.rule)} is out of use"
    rule = rule_text(found.rules, found.rule)
    if found.state == "in-force":
        return f"{rule} is in force. What has failed already: mendflow rules apply {found.group or 'GROUP'}"
    after = f", and in force after {found.promote_after} decisions that agree" if found.promote_after else ""
    return f"{rule} is on trial{after}. To put it in force: mendflow proposals adopt {found.id} --in-force"


def _row(found: Proposal) -> tuple[str | Text, ...]:
    seen = found.evidence
    what = f"{found.message}: {found.sentence}" if found.message else found.sentence
    return (
        found.id,
        found.kind,
        state_text(found.state),
        _sure(seen.sure) if seen.sure is not None and found.kind not in OF_FAILURES else "-",
        f"{seen.caught:,} of {seen.of:,}",
        f"{seen.spoilt:,}",
        one_line(what, 300),
    )


def _sure(rate: Rate) -> str:
    return f"{rate.mean:.0%} ({rate.low:.0%} to {rate.high:.0%})" if rate.tried else "not tried"


def _show(found: Proposal) -> None:
    seen = found.evidence
    say(Text.assemble((found.id, "bold"), f" {found.kind}, {found.state}: {found.sentence}"))
    if found.again:
        say(f"  {found.again}")
    if found.message:
        group = f" (mendflow failures show {found.group})" if found.group else ""
        say(f"  cause: {one_line(found.message, 300)}{group}")
    flows = ", ".join(seen.flows[:IDS_SHOWN])
    times = f"from {short_time_text(seen.first_at)} to {short_time_text(seen.last_at)}"
    say(f"  {count_text(seen.failures, 'failure')} {times}, in flows: {flows}")
    if found.kind == "retire":
        say(f"  would retire {rule_text(found.rules, found.rule)}")
    else:
        say(f"  rules: {found.rules}, {found.type.value}/{found.task}")
        say(f"  if:    {found.condition}")
        say(f"  do:    {found.exlet or 'nothing; the failure is told at once'}")
    _show_evidence(found)
    _show_state(found)


def _show_evidence(found: Proposal) -> None:
    seen = found.evidence
    say(f"  would have caught {seen.caught:,} of {seen.of:,} that it is for{_examples(seen.caught_ids)}")
    if found.exlet and (seen.sure is None or not seen.sure.tried):
        say(f"  whether {found.exlet} would have mended them is not known: it was not tried for this cause")
    say(f"  would have spoilt {seen.spoilt:,} that another repair has cured{_examples(seen.spoilt_ids)}")
    for each in seen.similar:
        say(f"  {_similar(each)}")
    if found.kind == "avoid" and seen.sure is not None:
        say(f"  failed there: {seen.sure.helped:,} of {seen.sure.tried:,}")
    say(f"  cornerstone: the context of decision {found.decision}")
    if seen.breaks:
        say(f"  it cannot be in force as it is: {seen.breaks}")


def _examples(ids: list[str]) -> str:
    return f": {', '.join(ids[:IDS_SHOWN])}" + (", ..." if len(ids) > IDS_SHOWN else "") if ids else ""


def _similar(found: RepairRate) -> str:
    rate = found.rate
    if not rate.tried:
        return f"{found.exlet} was not tried yet for {found.among}"
    return (
        f"{found.exlet} helped {rate.helped:,} of {rate.tried:,} times for {found.among}:"
        f" {rate.low:.0%} to {rate.high:.0%} with 95 % confidence"
    )


def _show_state(found: Proposal) -> None:
    if found.adopted_at:
        say(f"  adopted by {found.adopted_by} at {short_time_text(found.adopted_at)} as rule {found.rule}")
    if found.state == "on-trial":
        trial = found.trial
        say(f"  on trial: would have fired {trial.fired:,} times; the same was done and helped {trial.agreed:,} times")
        if trial.otherwise:
            say(f"  something else helped {count_text(trial.otherwise, 'time')}{_examples(trial.otherwise_ids)}")
    if found.state == "dismissed":
        say(f"  dismissed by {found.dismissed_by}: {found.why}")
    if found.state in ("open", "outdated"):
        effect = "" if found.kind == "retire" else " (on trial: it does nothing yet; with --in-force it does)"
        say(f"adopt it:    mendflow proposals adopt {found.id}{effect}")
        say(f"or not:      mendflow proposals dismiss {found.id} --why TEXT")
