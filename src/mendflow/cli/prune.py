"""`mendflow prune`: remove cases that are over, with all that belongs to them; and rules by which servers do it."""

import asyncio
import sys
from collections import Counter
from difflib import get_close_matches
from typing import Annotated, Any, Final, get_args

import typer
from msgspec.structs import replace
from typer.core import TyperGroup

from mendflow.cli.command_context import CommandContext, with_context
from mendflow.cli.connection import has_server
from mendflow.cli.interrupt import interrupts, read_line
from mendflow.cli.printing import print_answer, print_json, print_table, say
from mendflow.client import Client
from mendflow.core.model.errors import Conflict, InvalidRequest, NotFound
from mendflow.core.model.retention import (
    GRACE_MS,
    EndState,
    PruneRequest,
    PruneRule,
    PruneView,
    RetentionRule,
    RetentionRuleView,
)
from mendflow.core.model.units import DURATION_EXAMPLES, SIZE_EXAMPLES, duration_ms, size_bytes
from mendflow.core.scheduling.amounts import duration, size
from mendflow.pages.formatting import count_text, short_time_text, size_text

app = typer.Typer()


class PruneGroup(TyperGroup):
    """A group whose first word is one of its commands, or else a case like those that follow; options of prune may
    stand before and after cases."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        _, words, _ = self.make_parser(ctx).parse_args(list(args))
        if not words or words[0] in self.commands:
            return super().parse_args(ctx, args)
        ctx.allow_interspersed_args = True
        return super(TyperGroup, self).parse_args(ctx, args)  # as a command without others


prune = typer.Typer(cls=PruneGroup, invoke_without_command=True, subcommand_metavar="[CASE]... | COMMAND [ARGS]...")
app.add_typer(prune, name="prune")

CASES_SHOWN: Final = 10
POLL_S: Final = 0.2
MINIMUM_MS: Final = 1
OlderThan = Annotated[
    str,
    typer.Option(
        "--older-than", metavar="DURATION", help="Only cases that ended so long ago: 30d.", show_default=False
    ),
]
Keep = Annotated[
    int,
    typer.Option("--keep", metavar="N", min=0, help="Keep the newest so many cases of each flow.", show_default=False),
]
MaxBytes = Annotated[
    str,
    typer.Option(
        "--max-bytes",
        metavar="SIZE",
        help="The oldest go, until the others need no more than this: 50GB.",
        show_default=False,
    ),
]
States = Annotated[
    list[str],
    typer.Option(
        "--state",
        metavar="STATE",
        help="Only cases that are completed, failed or cancelled; can be given several times.",
        show_default=False,
    ),
]
OfFlow = Annotated[str, typer.Option("--flow", metavar="FLOW", help="Only cases of this flow.", show_default=False)]
NOT_GIVEN: Final = -1


@prune.callback()
@with_context
def prune_cases(
    context: CommandContext,
    older_than: OlderThan = "",
    keep: Keep = NOT_GIVEN,
    max_bytes: MaxBytes = "",
    state: States = [],  # noqa: B006 - never changed
    flow: OfFlow = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would go, and how many bytes.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    grace: Annotated[
        str,
        typer.Option(
            "--grace",
            metavar="DURATION",
            help="Files that were stored or asked for so recently stay until the next time.",
        ),
    ] = "1h",
) -> None:
    """Remove cases that are over, by name, age, number, size, state or flow; set rules."""
    if context.inner:
        return
    named = list(context.words)
    rule = _rule(older_than, keep, max_bytes, state, flow)
    if named and rule != PruneRule():
        raise InvalidRequest("give cases, or conditions such as --older-than and --flow, but not both")
    request = PruneRequest(
        rules=[] if named else [rule],
        dry_run=dry_run,
        grace_ms=_duration("--grace", grace) if grace else GRACE_MS,
    )
    view = context.run(lambda client: _prune(client, request, named, yes=yes, json=context.json), changes=not dry_run)
    if view is None:
        return
    if context.json:
        print_json(view)
    elif not dry_run:
        _say_end(view, request, has_server(context.target))
    if view.state == "failed":
        raise Conflict(f"prune stopped: {view.problem}; what is missing is done by the next prune")


async def _prune(client: Client, request: PruneRequest, named: list[str], *, yes: bool, json: bool) -> PruneView | None:
    await _demand_flows(client, request)
    request = replace(request, cases=list(dict.fromkeys([(await client.case(name)).id for name in named])))
    if request.dry_run or not yes:
        forecast = await _run(client, replace(request, dry_run=True))
        if request.dry_run or forecast.state == "failed" or not forecast.cases:
            if not json or not request.dry_run:
                _say_forecast(forecast)
            return forecast if request.dry_run or forecast.state == "failed" else None
        _say_forecast(forecast)
        if not await _agreed():
            return None
    return await _run(client, request)


async def _demand_flows(client: Client, request: PruneRequest) -> None:
    """A flow that nobody has, and no case is of, is a mistake in its name."""
    for name in {rule.flow for rule in request.rules if rule.flow}:
        known = [str(view.name) for view in await client.flows()]
        if name not in known and not await client.cases(flow=name, limit=1):
            near = get_close_matches(name, known, n=1)
            meant = f"; did you mean {near[0]}?" if near else ""
            raise NotFound(f"there is no flow {name:.80}, and no case of one{meant}")


async def _agreed() -> bool:
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise InvalidRequest("prune removes cases for good, so it asks first; here it cannot: give --yes")
    say("Remove them for good? [y/N] (--yes does not ask)", err=True)
    with interrupts() as caught:
        if (await read_line(caught) or "").strip().lower() in ("y", "yes"):
            return True
    say("Nothing was removed.", err=True)
    return False


async def _run(client: Client, request: PruneRequest) -> PruneView:
    view = await client.prune(request)
    while view.state == "running":
        await asyncio.sleep(POLL_S)
        view = await client.prune_run(view.id)
    return view


def _say_forecast(view: PruneView) -> None:
    if not view.cases:
        say("No case goes by these conditions.", err=True)
    else:
        heads = ("case", "flow", "state", "ended", "size")
        rows = [
            (each.case, each.flow, each.status, short_time_text(each.ended_at), size_text(each.bytes))
            for each in view.pruned_cases[:CASES_SHOWN]
        ]
        print_table(heads, rows)
        if view.cases > CASES_SHOWN:
            say(f"and {view.cases - CASES_SHOWN:,} more")
        flows = Counter(each.flow for each in view.pruned_cases)
        told = f" of flow {next(iter(flows))}" if len(flows) == 1 else ""
        say(
            f"{count_text(view.cases, 'case')}{told} would go, with {count_text(view.files, 'file')}:"
            f" {size_text(view.bytes)}"
        )
    _say_spared(view)


def _say_end(view: PruneView, request: PruneRequest, served: bool) -> None:
    say(
        f"{count_text(view.cases, 'case')} and {count_text(view.files, 'file')} are gone: {size_text(view.bytes)} freed"
        f" in {(view.ended_at - view.started_at) / 1000:.1f} s"
    )
    if view.later_files:
        when = "within two hours" if served else "with the next mendflow prune"
        say(
            f"{count_text(view.later_files, 'file')} were stored or asked for in the last"
            f" {duration(request.grace_ms)}, and go {when}"
        )
    _say_spared(view)


def _say_spared(view: PruneView) -> None:
    if view.spared:
        stay, them = ("stays", "it") if view.spared == 1 else ("stay", "them")
        say(f"{count_text(view.spared, 'case')} {stay} although the conditions let {them} go:")
        for each in view.spared_cases[:CASES_SHOWN]:
            say(f"  {each.case}: {each.reason}")


# Rules


@prune.command("rules")
@with_context
def list_rules(context: CommandContext) -> None:
    """List the rules that a server applies once an hour."""
    views = context.run(lambda client: client.retention_rules())
    if context.json:
        print_json(views)
    elif not views:
        say("There are no rules, so cases stay until somebody prunes them; see mendflow prune set --help.")
    else:
        heads = ("rule", "flow", "states", "older than", "keep", "max size", "set by", "at")
        print_table(heads, [_row(view) for view in views])


def _row(view: RetentionRuleView) -> tuple[str, ...]:
    rule = view.rule
    return (
        rule.name,
        rule.flow or "all",
        ", ".join(rule.states) or "all",
        duration(rule.older_than_ms) if rule.older_than_ms else "",
        "" if rule.keep is None else f"{rule.keep:,}",
        "" if rule.max_bytes is None else size(rule.max_bytes),
        view.set_by,
        short_time_text(view.set_at),
    )


@prune.command("set")
@with_context
def set_rule(
    context: CommandContext,
    name: Annotated[str, typer.Argument(metavar="RULE", help="A name for the rule.")],
    older_than: OlderThan = "",
    keep: Keep = NOT_GIVEN,
    max_bytes: MaxBytes = "",
    state: States = [],  # noqa: B006 - never changed
    flow: OfFlow = "",
) -> None:
    """Set a rule: a server prunes the cases that it lets go, once an hour from now on."""
    rule = _rule(older_than, keep, max_bytes, state, flow)
    given = RetentionRule(name=name, **{each: getattr(rule, each) for each in PruneRule.__struct_fields__})
    view = context.run(lambda client: client.put_retention_rule(given), changes=True, begin=True)
    print_answer(context.json, view, f"rule {name} is set; mendflow prune with the same options applies it now")
    if not context.json and not has_server(context.target):
        say("No server runs here: rules are applied while mendflow serve or mendflow ui runs.", err=True)


@prune.command("unset")
@with_context
def unset_rule(
    context: CommandContext,
    name: Annotated[str, typer.Argument(metavar="RULE", help="A rule's name.")],
) -> None:
    """Remove a rule; cases that are gone do not come back."""
    view = context.run(lambda client: client.remove_retention_rule(name), changes=True)
    print_answer(context.json, view, f"rule {name} is removed")


def _rule(older_than: str, keep: int, max_bytes: str, states: list[str], flow: str) -> PruneRule:
    wrong = [each for each in states if each not in get_args(EndState)]
    if wrong:
        raise InvalidRequest(f"--state is one of {', '.join(get_args(EndState))}, not {wrong[0]!r:.40}")
    limit = size_bytes(max_bytes) if max_bytes else None
    if max_bytes and limit is None:
        raise InvalidRequest(f"--max-bytes is a size such as {SIZE_EXAMPLES}, not {max_bytes!r:.40}")
    return PruneRule(
        flow=flow,
        states=[each for each in get_args(EndState) if each in states],
        older_than_ms=max(MINIMUM_MS, _duration("--older-than", older_than)) if older_than else 0,
        keep=None if keep == NOT_GIVEN else keep,
        max_bytes=limit,
    )


def _duration(option: str, text: str) -> int:
    found = duration_ms(text)
    if found is None:
        raise InvalidRequest(f"{option} is a duration such as {DURATION_EXAMPLES}, not {text!r:.40}")
    return found
