"""Rules files: import one, export a set as one, check some."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from mendflow.cli.command_context import CommandContext, with_context
from mendflow.cli.connection import has_server
from mendflow.cli.exit_codes import ExitCode
from mendflow.cli.options import Project
from mendflow.cli.printing import print_json, say
from mendflow.cli.problems import show_problems
from mendflow.cli.rule_files import XRS, check_ending, declared_types, dump, load, problems_of, warnings_of
from mendflow.cli.rule_options import Note, SetArgument, Version
from mendflow.cli.rule_trees import shown_name
from mendflow.core.model.errors import Problem
from mendflow.core.model.repair import ExceptionType
from mendflow.core.model.rule_views import RuleCheckRequest
from mendflow.core.model.rules import DEFAULT_RULES, RuleSet
from mendflow.core.rules.source_names import ANY_SOURCE, sources_read
from mendflow.pages.formatting import count_text

app = typer.Typer()


@app.command("import")
@with_context
def import_(
    context: CommandContext,
    file: Annotated[str, typer.Argument(metavar="FILE", help="A rules file: .yaml, or .xrs of YAWL.")],
    name: Annotated[
        str,
        typer.Option("--name", metavar="SET", help="Import under this name instead of the file's.", show_default=False),
    ] = "",
    note: Note = "",
    project: Project = "",
) -> None:
    """Import a rules file; it is in force immediately."""
    rules, left = load(Path(file), name=name)
    if Path(file).suffix == XRS:
        types = context.run(lambda client: declared_types(client, rules.name), changes=True, begin=True)
        rules, left = load(Path(file), name=name, types=types)
    note = note or f"from {Path(file).name}"
    view = context.run(lambda client: client.put_rules(rules, note=note, project=project), changes=True, begin=True)
    _tell_left(left, "has no counterpart here and will not hold")
    if context.json:
        print_json(view)
    else:
        say(f"{shown_name(view.name)} version {view.version}: {count_text(view.rule_count, 'rule')}")
        warn_of_missing_flows(context, [view.name, *_selected(rules)])


@app.command("export")
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
    assert view.rules is not None, "a set that is asked for comes whole"
    if view.hidden_cornerstones:
        left_out = count_text(len(view.hidden_cornerstones), "cornerstone")
        say(f"warning: without {left_out}, whose cases are in projects that you do not see", err=True)
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


@app.command("check")
@with_context
def check(
    context: CommandContext, file: Annotated[list[str], typer.Argument(metavar="FILE...", help="Rules files.")]
) -> None:
    """Report every problem of rules files."""
    problems = [problem for path in file for problem in problems_of(Path(path))]
    warnings = [] if problems else [warning for path in file for warning in warnings_of(Path(path))]
    warnings += [] if problems else [warning for path in file for warning in _source_warnings(context, Path(path))]
    if context.json:
        print_json(problems)
    elif problems:
        show_problems(problems)
        say(f"{count_text(len(problems), 'problem')} in {count_text(len(file), 'file')}", err=True)
    else:
        show_problems(warnings)
        more = f", {count_text(len(warnings), 'warning')}" if warnings else ""
        say(f"{count_text(len(file), 'file')}, no problems{more}")
    raise typer.Exit(ExitCode.BAD_INPUT if problems else ExitCode.OK)


def _source_warnings(context: CommandContext, path: Path) -> list[Problem]:
    """The sources that the rules read and the server does not have, if one can be asked."""
    rules, _ = load(path)
    names = sorted(sources_read(rules) - {ANY_SOURCE})
    if not names:
        return []
    if not has_server(context.target):
        told = f"rules read {', '.join(f'sources.{name}' for name in names)}; no server was asked whether it has them"
        return [Problem(message=told, file=str(path))]
    known = {warning.message for warning in warnings_of(path)}
    checked = context.run(lambda client: client.check_rules(RuleCheckRequest(rules=rules)))
    return [Problem(message=told, file=str(path)) for told in checked.warnings if told not in known]


def _selected(rules: RuleSet) -> list[str]:
    """The flows that the set's rules select and that do not come with it."""
    trees = rules.trees.get(ExceptionType.SELECTION, {}).values()
    return [rule.exlet for tree in trees for rule in tree.rules.values() if rule.exlet not in ("", *rules.exlets)]


def warn_of_missing_flows(context: CommandContext, names: list[str]) -> None:
    """To standard error, which of these flows nobody has deployed: perhaps a name is misspelt."""
    known = {DEFAULT_RULES, *(str(view.name) for view in context.run(lambda client: client.flows()))}
    if missing := [name for name in dict.fromkeys(names) if name not in known]:
        flows = f"flow {missing[0]} is" if len(missing) == 1 else f"flows {', '.join(missing)} are"
        say(f"no {flows} deployed here yet; deploy it before the rules need it", err=True)


def _tell_left(problems: list[Problem], what: str) -> None:
    """What another format could not say, to standard error."""
    if problems:
        show_problems(problems)
        say(f"{count_text(len(problems), 'thing')} {what}; it is told above", err=True)
