"""Commands for editing rules: change one, compare a failure with a cornerstone, ask and replay rules without effect,
map tasks, and see how exlets and rules on trial have done."""

import json
from pathlib import Path
from typing import Annotated

import typer

from mendflow.cli.command_context import CommandContext, with_context
from mendflow.cli.failures import is_group
from mendflow.cli.printing import print_answer, print_json, print_table, say
from mendflow.cli.rule_differences import compared_with, say_differences
from mendflow.cli.rule_files import exlet_of, load
from mendflow.cli.rule_options import From, InSet, OfTask, OfType, RuleArgument, SetArgument, Task, Type
from mendflow.cli.rule_tasks import task_lines
from mendflow.cli.rule_trees import shown_name
from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.repair import ExceptionType
from mendflow.core.model.rule_views import (
    EvaluationRequest,
    EvaluationView,
    ReplayView,
    RuleRevision,
    TaskMapping,
)
from mendflow.core.model.rules import rule_text
from mendflow.core.model.values import Value
from mendflow.pages.formatting import count_text, one_line

app = typer.Typer()
ROWS_SHOWN = 20

NewCondition = Annotated[
    str | None, typer.Option("--if", metavar="CONDITION", help="Its new condition.", show_default=False)
]
NewExlet = Annotated[
    str | None,
    typer.Option("--exlet", metavar="EXLET", help="Its new exlet: a name, a file, or steps.", show_default=False),
]
NewNote = Annotated[str | None, typer.Option("--note", "-m", metavar="TEXT", help="Its new note.", show_default=False)]


@app.command("change")
@with_context
def change(
    context: CommandContext,
    name: SetArgument,
    rule: RuleArgument,
    condition: NewCondition = None,
    exlet: NewExlet = None,
    note: NewNote = None,
    type: OfType = "",
    task: OfTask = "",
    try_only: Annotated[bool, typer.Option("--try", help="Only check it; nothing changes.")] = False,
) -> None:
    """Change the condition, the exlet or the note of a rule."""
    named, flow = exlet_of(exlet) if exlet else (exlet, None)
    wish = RuleRevision(
        rule=rule,
        type=ExceptionType(type) if type else None,
        task=task,
        condition=condition,
        exlet=named,
        flow=flow,
        note=note,
        try_only=try_only,
    )
    changed = context.run(lambda client: client.change_rule(name, wish), changes=True)
    done = "can be changed so" if try_only else f"is changed: version {changed.version}"
    print_answer(context.json, changed, f"{rule_text(name, rule)} {done}")


@app.command("compare")
@with_context
def compare(
    context: CommandContext,
    at_hand: From,
    in_set: InSet = "",
    rule: Annotated[
        int | None,
        typer.Option("--rule", metavar="N", help="The rule whose cornerstone to compare with.", show_default=False),
    ] = None,
    task: OfTask = "",
) -> None:
    """Show what distinguishes a failure from a rule's cornerstone, with conditions to paste."""
    group, decision = (at_hand, "") if is_group(at_hand) else ("", at_hand)
    view = context.run(lambda client: client.differences(decision, group, in_set, rule, task))
    if context.json:
        print_json(view)
    elif view.differences:
        say(f"{view.decision} differs from {compared_with(view)} in:")
        say_differences(view.differences, ROWS_SHOWN)
    else:
        say(f"{view.decision} does not differ from {compared_with(view)}")


@app.command("evaluate")
@with_context
def evaluate(
    context: CommandContext,
    name: Annotated[str, typer.Argument(metavar="SET|FILE", help="A rule set, or a rules file that is not imported.")],
    at_hand: Annotated[
        str, typer.Option("--from", metavar="DECISION", help="A decision that has the context.", show_default=False)
    ] = "",
    given: Annotated[
        str, typer.Option("--data", metavar="JSON|FILE", help="The context, as JSON.", show_default=False)
    ] = "",
    type: Type = "",
    task: Task = "",
    only: Annotated[bool, typer.Option("--only", help="Do not ask the default rules.")] = False,
) -> None:
    """Ask rules what they conclude from a context; nothing is done."""
    is_file = Path(name).suffix in (".yaml", ".yml", ".xrs")
    wish = EvaluationRequest(
        name="" if is_file else name,
        rules=load(Path(name))[0] if is_file else None,
        decision=at_hand,
        context=_context(given) if given else None,
        type=ExceptionType(type) if type else None,
        task=task,
        only=only,
    )
    view = context.run(lambda client: client.evaluate_rules(wish))
    if context.json:
        print_json(view)
    else:
        _say_evaluated(view)


def _context(data: str) -> dict[str, Value]:
    text = data if data.lstrip().startswith("{") else Path(data).read_text(encoding="utf-8")
    try:
        found = json.loads(text)
    except ValueError as error:
        raise InvalidRequest(f"--data is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise InvalidRequest('--data is a context, such as {"fault": {"exit_code": 7}}')
    return found


def _say_evaluated(view: EvaluationView) -> None:
    for each in view.trail:
        held = "holds" if each.held else f"error: {one_line(each.error, 80)}" if each.error else "does not hold"
        say(f"  {rule_text(each.rules, each.rule)}: {one_line(each.condition, 80)}  {held}")
    if view.conclusion is None:
        say("no rule concludes anything")
    else:
        say(f"{rule_text(view.conclusion.rules, view.conclusion.rule)} concludes {view.conclusion.exlet}")
    for trial in view.trials:
        say(f"on trial, {rule_text(trial.rules, trial.rule)} would conclude {trial.exlet}")


@app.command("replay")
@with_context
def replay(
    context: CommandContext,
    file: Annotated[str, typer.Argument(metavar="FILE", help="A rules file: .yaml, or .xrs of YAWL.")],
    name: Annotated[
        str, typer.Option("--name", metavar="SET", help="The set that it would replace.", show_default=False)
    ] = "",
    limit: Annotated[
        int, typer.Option("--limit", min=1, metavar="N", help="Use at most this many past decisions.")
    ] = 100_000,
) -> None:
    """Show which past decisions a rules file would change, before it is imported."""
    rules, _ = load(Path(file), name=name)
    view = context.run(lambda client: client.replay_rules(rules, limit=limit))
    if context.json:
        print_json(view)
    else:
        _say_replayed(view)


def _say_replayed(view: ReplayView) -> None:
    changed = view.looked_at - view.same
    say(f"of {count_text(view.looked_at, 'past decision')}, {changed:,} would be concluded otherwise")
    for each in view.changed[:ROWS_SHOWN]:
        say(f"  {each.decision}: {each.new_exlet or 'nothing'} instead of {each.exlet or 'nothing'}")
    if changed > ROWS_SHOWN:
        say(f"  and {changed - ROWS_SHOWN:,} more; --json has the newest {len(view.changed):,}")
    for stone in view.cornerstones:
        tree = stone.type.value + (f" of {stone.task}" if stone.task else "")
        now = f"{stone.new_exlet or 'nothing'} instead of {stone.exlet or 'nothing'}"
        say(f"the cornerstone of rule {stone.rule} ({tree}) would conclude {now}")
    for problem in view.problems:
        say(f"it would be refused: {problem}")


@app.command("tasks")
@with_context
def tasks(
    context: CommandContext,
    name: SetArgument,
    mapped: Annotated[
        list[str] | None,
        typer.Option("--map", metavar="OLD=NEW", help="A task that the flow calls otherwise now.", show_default=False),
    ] = None,
    version: Annotated[
        list[str] | None,
        typer.Option(
            "--flow-version", metavar="V", help="Hold for this version: newest, all, a digest.", show_default=False
        ),
    ] = None,
) -> None:
    """Show which tasks of its flow a rule set does not fit; map renamed ones; limit it to versions of the flow."""
    versions = None if not version else [] if version == ["all"] else version
    wish = TaskMapping(renamed=_pairs(mapped or []), flow_versions=versions)
    change = bool(mapped) or version is not None
    view = context.run(
        lambda client: client.map_tasks(name, wish) if change else client.rule_tasks(name), changes=change
    )
    if context.json:
        print_json(view)
        return
    for line in task_lines(view) or [f"the rules of {shown_name(name)} fit its flow"]:
        say(line)
    for old, new in view.renamed.items():
        say(f"rules for {old} are used for {new}")


def _pairs(given: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in given:
        old, equals, new = pair.partition("=")
        if not old or not equals:
            raise InvalidRequest(f"--map {pair!r} is not OLD=NEW; `OLD=` ends a mapping")
        found[old] = new
    return found


@app.command("results")
@with_context
def results(context: CommandContext) -> None:
    """Show what came of each exlet, over all failures."""
    views = context.run(lambda client: client.exlet_results())
    if context.json:
        print_json(views)
        return
    rows = (
        (
            each.exlet,
            f"{each.count:,}",
            f"{each.recovered:,} of {each.known:,}",
            f"{each.groups:,}",
            ", ".join(f"{number:,} {word}" for word, number in each.results.items()),
        )
        for each in views
    )
    print_table(("exlet", "used", "helped", "causes", "results"), rows)


@app.command("agreement")
@with_context
def agreement(context: CommandContext, name: SetArgument) -> None:
    """Show how often each rule on trial agreed with what was done."""
    views = context.run(lambda client: client.trial_agreement(name))
    if context.json:
        print_json(views)
        return
    if not views:
        say(f"no rule of {shown_name(name)} is on trial")
        return
    rows = (
        (
            str(each.rule),
            f"{each.type.value} {each.task}".strip(),
            each.exlet,
            f"{each.fired:,}",
            f"{each.agreed:,}",
            f"{len(each.otherwise):,}",
            f"{each.nothing:,}",
        )
        for each in views
    )
    print_table(("rule", "of", "exlet", "would decide", "agreed", "otherwise", "nothing done"), rows)
