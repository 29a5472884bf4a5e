"""Commands for rules: show them, add one for a failure, test it on past failures, restore an earlier version."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from mendflow.cli import repairs
from mendflow.cli.command_context import CommandContext, with_context
from mendflow.cli.exit_codes import ExitCode
from mendflow.cli.failures import is_group
from mendflow.cli.groups import take
from mendflow.cli.options import complete_from_server, complete_words, one_of
from mendflow.cli.printing import print_answer, print_json, print_table, say
from mendflow.cli.problems import show_problems
from mendflow.cli.rule_files import check_ending, dump, exlet_of, load, problems_of
from mendflow.cli.rule_trees import show_set, shown_name
from mendflow.cli.rule_trials import TRIED_SHOWN, say_trial
from mendflow.client import Client
from mendflow.core.model.errors import InvalidRequest, Problem
from mendflow.core.model.repair import ExceptionType
from mendflow.core.model.repair_views import (
    ApplyResult,
    RuleAddition,
    RuleChange,
    RuleSelector,
    RuleSetView,
    RuleSpec,
)
from mendflow.core.model.rules import DEFAULT_RULES, RuleSet
from mendflow.pages.formatting import count_text, short_time_text

app = typer.Typer()
rules_app = typer.Typer(no_args_is_help=False, invoke_without_command=True)
app.add_typer(rules_app, name="rules", help="List the rules; add, try, export, import or restore them.")
take(rules_app, [(repairs.app, ("reject", "patterns", "compensations", "levels"))])

TYPES = tuple(type.value for type in ExceptionType)

SetArgument = Annotated[
    str,
    typer.Argument(
        metavar="SET", help="A flow's name; `*`: the default rules.", autocompletion=complete_from_server("rule_sets")
    ),
]
From = Annotated[
    str,
    typer.Option(
        "--from",
        metavar="ID",
        help="The failure that the rule is for: a group of failures, or a decision.",
        show_default=False,
        autocompletion=complete_from_server("groups"),
    ),
]
If = Annotated[
    str, typer.Option("--if", metavar="CONDITION", help="The condition of the rule, in CEL.", show_default=False)
]
Do = Annotated[
    str,
    typer.Option(
        "--exlet", metavar="EXLET", help="An exlet's name, a file with one, or its steps.", show_default=False
    ),
]
InSet = Annotated[
    str,
    typer.Option(
        "--rules", metavar="SET", help="The rule set; default: that of the failure's flow.", show_default=False
    ),
]
Type = Annotated[
    str,
    typer.Option(
        "--type",
        metavar="TYPE",
        help="The type of exception, if --from is not given.",
        show_default=False,
        callback=one_of("--type", TYPES),
        autocompletion=complete_words(TYPES),
    ),
]
Task = Annotated[
    str,
    typer.Option("--task", metavar="TASK", help="The task, if --from is not given; `*` for all.", show_default=False),
]
OfType = Annotated[
    str,
    typer.Option(
        "--type",
        metavar="TYPE",
        help="The type of exception, if several trees have a rule of this number.",
        show_default=False,
        callback=one_of("--type", TYPES),
        autocompletion=complete_words(TYPES),
    ),
]
OfTask = Annotated[
    str,
    typer.Option(
        "--task",
        metavar="TASK",
        help="The task, if several trees have a rule of this number; `*` for all.",
        show_default=False,
    ),
]
RuleArgument = Annotated[
    int, typer.Argument(metavar="RULE", min=0, help="The rule's number, as `rules show` prints it.")
]
Passive = Annotated[bool, typer.Option("--passive", help="On trial: what it would do is recorded, but not done.")]
Note = Annotated[
    str, typer.Option("--note", "-m", metavar="TEXT", help="The reason, stored with it.", show_default=False)
]
Version = Annotated[
    int | None,
    typer.Option("--version", min=0, metavar="N", help="This version; default: the newest.", show_default=False),
]


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
    views = context.run(lambda client: client.rule_sets())
    if context.json:
        print_json(views)
        return
    rows = (
        (view.name, str(view.version), f"{view.rule_count:,}", f"{view.passive_count:,}", _when(view), _about(view))
        for view in views
    )
    print_table(("set", "version", "rules", "on trial", "changed", "about"), rows)


@rules_app.command("show")
@with_context
def show(context: CommandContext, name: SetArgument, version: Version = None) -> None:
    """Show a rule set as trees, with how often each rule decided."""
    view = context.run(lambda client: client.rule_set(name, version))
    if context.json:
        print_json(view)
    else:
        show_set(view)


@rules_app.command("add")
@with_context
def add(
    context: CommandContext,
    at_hand: From = "",
    condition: If = "",
    exlet: Do = "",
    in_set: InSet = "",
    type: Type = "",
    task: Task = "",
    passive: Passive = False,
    note: Note = "",
    try_first: Annotated[bool, typer.Option("--try", help="Only test it against past failures.")] = False,
    apply: Annotated[bool, typer.Option("--apply", help="Apply it now to every waiting case of the group.")] = False,
) -> None:
    """Add a rule for a failure; it is in force immediately."""
    wish = _wish(at_hand, condition, exlet, in_set, type, task, passive=passive, note=note)
    if apply and not (wish.group or wish.decision):
        raise InvalidRequest("--apply is for the cases of a group; say which by --from GROUP")
    if try_first:
        _try(context, wish, limit=10_000)
        return

    async def added(client: Client) -> tuple[RuleAddition, ApplyResult | None]:
        made = await client.add_rule(wish)
        group = wish.group or ((await client.decision(wish.decision)).group if apply else "")
        return made, await client.apply_rules(group) if apply else None

    made, applied = context.run(added)
    if context.json:
        print_json({"added": made, "applied": applied})
        return
    _say_added(made, passive=passive)
    if not at_hand:
        _tell_missing(context, [made.rules])
    if applied is not None:
        _say_applied(applied)


@rules_app.command("try")
@with_context
def try_(
    context: CommandContext,
    at_hand: From = "",
    condition: If = "",
    exlet: Do = "",
    in_set: InSet = "",
    type: Type = "",
    task: Task = "",
    limit: Annotated[
        int, typer.Option("--limit", min=1, metavar="N", help="Use at most this many past failures.")
    ] = 10_000,
) -> None:
    """Test a rule against past failures; nothing changes."""
    _try(context, _wish(at_hand, condition, exlet or "tried", in_set, type, task), limit=limit)


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
    view = context.run(lambda client: client.restore_rules(name, version))
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
    _say_changed(context, context.run(lambda client: client.promote_rule(name, meant)), "is in force")


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
    _say_changed(context, context.run(lambda client: client.retire_rule(name, meant)), "is out of use")


def _say_changed(context: CommandContext, changed: RuleChange, word: str) -> None:
    print_answer(context.json, changed, f"{_named(changed)} {word}: version {changed.version}")


def _named(rule: RuleAddition | RuleChange) -> str:
    tree = rule.type.value + (f" of {rule.task}" if rule.task else "")
    return f"rule {rule.rule} of {shown_name(rule.rules)} ({tree})"


@rules_app.command("import")
@with_context
def import_(
    context: CommandContext,
    file: Annotated[str, typer.Argument(metavar="FILE", help="A rules file: .yaml, or .xrs of YAWL.")],
    name: Annotated[
        str,
        typer.Option("--name", metavar="SET", help="Import under this name instead of the file's.", show_default=False),
    ] = "",
    note: Note = "",
) -> None:
    """Import a rules file; it is in force immediately."""
    rules, left = load(Path(file), name=name)
    view = context.run(lambda client: client.put_rules(rules, note=note or f"from {Path(file).name}"))
    _tell_left(left, "has no counterpart here and will not hold")
    if context.json:
        print_json(view)
    else:
        say(f"{shown_name(view.name)} version {view.version}: {count_text(view.rule_count, 'rule')}")
        _tell_missing(context, [view.name, *_selected(rules)])


@rules_app.command("export")
@with_context
def export(
    context: CommandContext,
    name: SetArgument,
    file: Annotated[
        str, typer.Argument(metavar="[FILE]", help="The file to write, .xrs for YAWL; default: print YAML.")
    ] = "",
    version: Version = None,
) -> None:
    """Write a rule set to a file."""
    path = Path(file or "rules.yaml")
    check_ending(path)
    view = context.run(lambda client: client.rule_set(name, version))
    assert view.rules is not None, "the server returns the rule set in full"
    if context.json:
        print_json(view.rules)
        return
    text, left = dump(view.rules, path)
    _tell_left(left, "will not be understood by YAWL")
    if file:
        Path(file).write_text(text, encoding="utf-8")
        say(f"{shown_name(view.name)} version {view.version} is in {file}")
    else:
        sys.stdout.write(text)


@rules_app.command("check")
@with_context
def check(
    context: CommandContext, file: Annotated[list[str], typer.Argument(metavar="FILE...", help="Rules files.")]
) -> None:
    """Report every problem of rules files."""
    problems = [problem for path in file for problem in problems_of(Path(path))]
    if context.json:
        print_json(problems)
    elif problems:
        show_problems(problems)
        say(f"{count_text(len(problems), 'problem')} in {count_text(len(file), 'file')}", err=True)
    else:
        say(f"{count_text(len(file), 'file')}, no problems")
    raise typer.Exit(ExitCode.BAD_INPUT if problems else ExitCode.OK)


def _selected(rules: RuleSet) -> list[str]:
    """The flows that the set's rules select and that the file does not contain."""
    trees = rules.trees.get(ExceptionType.SELECTION, {}).values()
    return [rule.exlet for tree in trees for rule in tree.rules.values() if rule.exlet not in ("", *rules.exlets)]


def _tell_missing(context: CommandContext, names: list[str]) -> None:
    """Print, to standard error, which of these flows are not deployed: a name may be misspelt."""
    known = {DEFAULT_RULES, *(str(view.name) for view in context.run(lambda client: client.flows()))}
    if missing := [name for name in dict.fromkeys(names) if name not in known]:
        flows = f"flow {missing[0]} is" if len(missing) == 1 else f"flows {', '.join(missing)} are"
        say(f"no {flows} deployed here yet; deploy it before the rules need it", err=True)


def _tell_left(problems: list[Problem], what: str) -> None:
    """Print, to standard error, what another format could not express."""
    if problems:
        show_problems(problems)
        say(f"{count_text(len(problems), 'thing')} {what}; see above", err=True)


def _wish(
    at_hand: str,
    condition: str,
    exlet: str,
    in_set: str,
    type: str,
    task: str,
    *,
    passive: bool = False,
    note: str = "",
) -> RuleSpec:
    if not condition:
        raise InvalidRequest(
            "give the condition of the rule: --if CONDITION, such as --if 'fault.category == \"memory\"'"
        )
    if not at_hand and not type:
        raise InvalidRequest(
            "say what the rule is for: --from GROUP or --from DECISION, or --type TYPE and --task TASK"
        )
    name, flow = exlet_of(exlet)
    return RuleSpec(
        condition=condition,
        exlet=name,
        flow=flow,
        group=at_hand if is_group(at_hand) else "",
        decision="" if is_group(at_hand) else at_hand,
        rules=in_set,
        type=ExceptionType(type) if type else None,
        task=task,
        passive=passive,
        note=note,
    )


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


def _say_applied(applied: ApplyResult) -> None:
    say(f"applied now to {count_text(len(applied.taken_up), 'waiting failure')}")
    for id in applied.taken_up[:TRIED_SHOWN]:
        say(f"  {id}")
    if applied.left:
        say(f"{count_text(len(applied.left), 'failure')} still wait: no rule matches them")


def _when(view: RuleSetView) -> str:
    return short_time_text(view.at) if view.at else "as shipped" if view.version == 0 else "-"


def _about(view: RuleSetView) -> str:
    return ", ".join(view.types)
