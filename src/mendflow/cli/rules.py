"""Commands for rules: show them, add one for a failure, test it on past failures, restore an earlier version."""

from typing import Annotated

import typer

from mendflow.cli import repairs, rule_editing, rule_sources, rule_transfer
from mendflow.cli.command_context import CommandContext, with_context
from mendflow.cli.failures import GroupArgument, is_group
from mendflow.cli.groups import take
from mendflow.cli.printing import print_answer, print_json, print_table, say
from mendflow.cli.repairs import raise_trigger
from mendflow.cli.rule_applying import apply_now, print_who_runs, say_applied
from mendflow.cli.rule_differences import compared_with, say_differences
from mendflow.cli.rule_files import exlet_of
from mendflow.cli.rule_options import (
    USUAL_DRAFT,
    DraftOptions,
    Note,
    OfTask,
    OfType,
    Passive,
    RuleArgument,
    SetArgument,
    Version,
    with_draft_options,
)
from mendflow.cli.rule_tasks import misfits
from mendflow.cli.rule_transfer import warn_of_missing_flows
from mendflow.cli.rule_trees import show_rule, show_set, shown_name
from mendflow.cli.rule_trials import say_trial
from mendflow.client import Client
from mendflow.core.model.errors import InvalidRequest, NotFound
from mendflow.core.model.repair import ExceptionType
from mendflow.core.model.repair_views import (
    ApplyResult,
    RuleAddition,
    RuleChange,
    RuleSelector,
    RuleSetView,
    RuleSpec,
)
from mendflow.core.model.rule_views import DifferencesView
from mendflow.core.model.rules import DEFAULT_RULES
from mendflow.core.recovery.repeat_bounds import missing_bound
from mendflow.pages.formatting import short_time_text

app = typer.Typer()
rules_app = typer.Typer(no_args_is_help=False, invoke_without_command=True)
app.add_typer(
    rules_app,
    name="rules",
    help="List the rules; add, try, export, import or restore them.",
    epilog="A rule is a condition over a failure, and the exlet that it concludes: a repair, a small flow whose steps"
    " give orders to the case. The failure that a rule was made for is its cornerstone: what is concluded for that"
    " does not change when rules are added.",
)
take(rules_app, [(repairs.app, ("reject", "patterns", "compensations", "levels"))])


@rules_app.callback()
@with_context
def rules(context: CommandContext) -> None:
    """List the rules; add, try, export, import or restore them."""
    if not context.inner:
        _list(context)


@rules_app.command("list")
@with_context
def list_(context: CommandContext) -> None:
    """List the rule sets."""
    _list(context)


def _list(context: CommandContext) -> None:
    async def look(client: Client) -> tuple[list[RuleSetView], list[str]]:
        views = await client.rule_sets()
        return views, await misfits(client, [view.name for view in views])

    views, lines = context.run(look)
    if context.json:
        print_json(views)
        return
    rows = (
        (
            view.name,
            view.project if view.name != DEFAULT_RULES else "",
            str(view.version),
            f"{view.rule_count:,}",
            f"{view.passive_count:,}",
            _when(view),
            view.author,
            _about(view),
        )
        for view in views
    )
    print_table(("set", "project", "version", "rules", "on trial", "changed", "by", "about"), rows)
    for line in lines:
        say(line, err=True)


@rules_app.command("show")
@with_context
def show(
    context: CommandContext,
    name: SetArgument,
    version: Version = None,
    rule: Annotated[
        int | None, typer.Option("--rule", metavar="N", help="Only this rule, in full.", show_default=False)
    ] = None,
) -> None:
    """Show a rule set as trees, with how often each rule decided."""
    view = context.run(lambda client: client.rule_set(name, version))
    if context.json:
        print_json(view)
    elif rule is not None:
        show_rule(view, rule)
    else:
        show_set(view)


@rules_app.command("add")
@with_context
@with_draft_options
def add(
    context: CommandContext,
    draft: DraftOptions = USUAL_DRAFT,
    passive: Passive = False,
    note: Note = "",
    try_first: Annotated[bool, typer.Option("--try", help="Only test it against past failures.")] = False,
    apply: Annotated[
        bool, typer.Option("--apply", help="Apply it now to the group: to what waits, and to cases that have failed.")
    ] = False,
) -> None:
    """Add a rule for a failure; it is in force immediately."""
    if draft.at_hand and not draft.condition:
        _offer_conditions(context, draft.at_hand, draft.in_set)
    wish = _wish(draft, draft.exlet, passive=passive, note=note)
    if apply and not (wish.group or wish.decision):
        raise InvalidRequest("--apply is for the cases of a group; say which by --from GROUP")
    if try_first:
        _try(context, wish, limit=10_000)
        return

    async def added(client: Client) -> tuple[RuleAddition, ApplyResult | None]:
        made = await client.add_rule(wish)
        await _warn_of_no_end(client, wish, made.rules)
        group = wish.group or ((await client.decision(wish.decision)).group if apply else "")
        return made, await apply_now(client, group) if apply else None

    made, applied = context.run(added, changes=not draft.at_hand)
    if context.json:
        print_json({"added": made, "applied": applied})
        return
    _say_added(made, passive=passive)
    if not draft.at_hand:
        warn_of_missing_flows(context, [made.rules])
    if applied is not None:
        say_applied(applied)
        print_who_runs(context.target, applied.cases)


@rules_app.command("apply")
@with_context
def apply_(context: CommandContext, group: GroupArgument) -> None:
    """Apply the rules now to a group of failures; cases that have failed go on from where they stood."""
    applied = context.run(lambda client: apply_now(client, group))
    if context.json:
        print_json(applied)
        return
    say_applied(applied)
    print_who_runs(context.target, applied.cases)


@rules_app.command("try")
@with_context
@with_draft_options
def try_(
    context: CommandContext,
    draft: DraftOptions = USUAL_DRAFT,
    limit: Annotated[
        int, typer.Option("--limit", min=1, metavar="N", help="Use at most this many past failures.")
    ] = 10_000,
) -> None:
    """Test a rule against past failures; nothing changes."""
    _try(context, _wish(draft, draft.exlet or "tried"), limit=limit)


@rules_app.command("history")
@with_context
def history(context: CommandContext, name: SetArgument) -> None:
    """List the versions of a rule set, newest first."""
    views = context.run(lambda client: client.rule_versions(name))
    if context.json:
        print_json(views)
        return
    rows = ((str(view.version), _when(view), view.author, f"{view.rule_count:,}", view.note) for view in views)
    print_table(("version", "at", "by", "rules", "note"), rows)


@rules_app.command("restore")
@with_context
def restore(
    context: CommandContext,
    name: SetArgument,
    version: Annotated[int, typer.Argument(metavar="VERSION", min=0, help="The version to restore.")],
) -> None:
    """Restore an earlier version of a rule set, as its newest version."""
    view = context.run(lambda client: client.restore_rules(name, version), changes=True)
    if context.json:
        print_json(view)
    else:
        say(f"{shown_name(view.name)} is as it was in version {version}; this is version {view.version}")


@rules_app.command("promote")
@with_context
def promote(
    context: CommandContext,
    name: SetArgument,
    rule: RuleArgument,
    type: OfType = "",
    task: OfTask = "",
    note: Note = "",
) -> None:
    """Put a rule that was on trial in force."""
    meant = RuleSelector(rule=rule, type=ExceptionType(type) if type else None, task=task, note=note)
    _say_changed(context, context.run(lambda client: client.promote_rule(name, meant), changes=True), "is in force")


@rules_app.command("retire")
@with_context
def retire(
    context: CommandContext,
    name: SetArgument,
    rule: RuleArgument,
    type: OfType = "",
    task: OfTask = "",
    exceptions: Annotated[bool, typer.Option("--exceptions", help="Also retire all exceptions to it.")] = False,
    note: Note = "",
) -> None:
    """Take a rule out of use."""
    meant = RuleSelector(
        rule=rule, type=ExceptionType(type) if type else None, task=task, exceptions=exceptions, note=note
    )
    _say_changed(context, context.run(lambda client: client.retire_rule(name, meant), changes=True), "is out of use")


def _say_changed(context: CommandContext, changed: RuleChange, word: str) -> None:
    print_answer(context.json, changed, f"{_named(changed)} {word}: version {changed.version}")


def _named(rule: RuleAddition | RuleChange) -> str:
    tree = rule.type.value + (f" of {rule.task}" if rule.task else "")
    return f"rule {rule.rule} of {shown_name(rule.rules)} ({tree})"


def _wish(draft: DraftOptions, exlet: str, *, passive: bool = False, note: str = "") -> RuleSpec:
    at_hand, type = draft.at_hand, draft.type
    if not draft.condition:
        raise InvalidRequest(
            "give the condition of the rule: --if CONDITION, such as --if 'fault.category == \"memory\"'"
        )
    if not at_hand and not type:
        raise InvalidRequest(
            "say what the rule is for: --from GROUP or --from DECISION, or --type TYPE and --task TASK"
        )
    name, flow = exlet_of(exlet)
    return RuleSpec(
        condition=draft.condition,
        exlet=name,
        flow=flow,
        group=at_hand if is_group(at_hand) else "",
        decision="" if is_group(at_hand) else at_hand,
        rules=draft.in_set,
        type=ExceptionType(type) if type else None,
        task=draft.task,
        passive=passive,
        note=note,
    )


async def _warn_of_no_end(client: Client, wish: RuleSpec, name: str) -> None:
    """A job that always fails would be run again for ever, or until the server stops it."""
    exlet = wish.flow
    for each in dict.fromkeys((name, DEFAULT_RULES)) if exlet is None else ():
        rules = (await client.rule_set(each)).rules
        exlet = exlet or (rules.exlets.get(wish.exlet) if rules is not None else None)
    lacking = missing_bound(wish.condition, exlet) if exlet is not None else ""
    if lacking:
        say(
            f"warning: {wish.exlet} runs the job again, and the condition also holds each time that it fails again;"
            f" add a bound, as in --if '... && {lacking}'",
            err=True,
        )


def _offer_conditions(context: CommandContext, at_hand: str, in_set: str) -> None:
    """To standard error, what distinguishes the failure: conditions to choose from."""
    group, decision = (at_hand, "") if is_group(at_hand) else ("", at_hand)

    async def look(client: Client) -> DifferencesView | None:
        try:
            return await client.differences(decision, group, in_set)
        except NotFound:
            return None  # the condition is missing all the same, and that is said first

    view = context.run(look)
    if view is not None and view.differences:
        say(f"{view.decision} differs from {compared_with(view)} in:", err=True)
        say_differences(view.differences, err=True)


def _try(context: CommandContext, wish: RuleSpec, *, limit: int) -> None:
    trial = context.run(lambda client: client.try_rule(wish, limit=limit))
    if context.json:
        print_json(trial)
    else:
        say_trial(trial)


def _say_added(made: RuleAddition, *, passive: bool) -> None:
    where = f", {'an exception to' if made.side == 'true' else 'instead of'} rule {made.under}" if made.side else ""
    trial = " on trial" if passive else ""
    say(_named(made) + (", which was on trial" if made.promoted else where))
    say(f"it applies{trial} from now on: version {made.version}")
    if made.differences and made.neighbour is not None:
        say(f"its case differs from the cornerstone of rule {made.neighbour} in:")
        say_differences(made.differences)
    if made.warning:
        say(f"warning: {made.warning}", err=True)


def _when(view: RuleSetView) -> str:
    return short_time_text(view.at) if view.at else "as shipped" if view.version == 0 else "-"


def _about(view: RuleSetView) -> str:
    return ", ".join(view.types)


take(rules_app, [(rule_transfer.app, ("import", "export", "check"))])
take(
    rules_app,
    [(rule_editing.app, ("change", "compare", "evaluate", "replay", "tasks", "results", "agreement"))],
)
take(rules_app, [(rule_sources.app, ("sources",))])


rules_app.command("raise")(raise_trigger)
