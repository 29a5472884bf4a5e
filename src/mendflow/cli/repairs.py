"""Commands for exceptions and repairs of one case: history, raise, mend, reject; and the retry levels."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from mendflow.cli.case_references import FORMS, find_reference
from mendflow.cli.command_context import CommandContext, with_context
from mendflow.cli.inputs import json_or_text
from mendflow.cli.options import CaseArgument, complete_from_server
from mendflow.cli.output_paths import check_file
from mendflow.cli.printing import STYLES, print_answer, print_json, print_table, say
from mendflow.cli.repair_trails import trial_text
from mendflow.cli.rule_files import exlet_of
from mendflow.cli.rule_trees import shown_name
from mendflow.client import Client
from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.ids import item_text
from mendflow.core.model.repair_views import (
    CompensationView,
    DecisionView,
    HistoryEntry,
    LevelView,
    RejectRequest,
    RepairRequest,
    TriggerView,
)
from mendflow.core.model.rules import rule_text
from mendflow.formats.files import flow_text
from mendflow.formats.patterns import read_patterns
from mendflow.lazy import LazyModule
from mendflow.pages.formatting import count_text, duration_text, short_time_text

if TYPE_CHECKING:
    from mendflow.formats import xes as xes_format
else:
    xes_format = LazyModule("mendflow.formats.xes")

app = typer.Typer()
levels_app = typer.Typer(no_args_is_help=False, invoke_without_command=True)
app.add_typer(levels_app, name="levels", help="List the retry levels and the jobs that wait in them; drain one.")

compensations_app = typer.Typer(no_args_is_help=False, invoke_without_command=True)
app.add_typer(compensations_app, name="compensations", help="List which flow undoes which task; add or remove one.")

patterns_app = typer.Typer(no_args_is_help=False, invoke_without_command=True)
app.add_typer(patterns_app, name="patterns", help="List the patterns of submission and of repair; add some.")

REPAIRS = frozenset({"decided", "repairing", "repaired", "tried in vain"})
"""What the exception service says of a repair as a whole; the rest are its steps."""

OptionalCase = Annotated[
    str,
    typer.Argument(
        metavar="[CASE]",
        help=f"A case's id, or `last`; with an item, what happened to that: {FORMS}.",
        autocompletion=complete_from_server("cases"),
        show_default=False,
    ),
]
Xes = Annotated[
    str,
    typer.Option("--xes", metavar="FILE", help="Write it as XES, for process mining.", show_default=False),
]
ItemOption = Annotated[
    str,
    typer.Option("--item", metavar="ITEM", help="One item of the case; default: the case itself.", show_default=False),
]
Exlet = Annotated[
    str,
    typer.Option(
        "--exlet", metavar="EXLET", help="An exlet's name, a file with one, or its steps.", show_default=False
    ),
]
If = Annotated[
    str,
    typer.Option(
        "--if", metavar="CONDITION", help="Also add a rule with this condition and exlet.", show_default=False
    ),
]
Note = Annotated[
    str, typer.Option("--note", "-m", metavar="TEXT", help="The reason, stored with it.", show_default=False)
]


@app.command("history")
@with_context
def history(
    context: CommandContext,
    case: OptionalCase = "",
    xes: Xes = "",
    flow: Annotated[
        str,
        typer.Option(
            "--flow",
            metavar="NAME",
            help="With --xes: all cases of this flow.",
            show_default=False,
            autocompletion=complete_from_server("flows"),
        ),
    ] = "",
    limit: Annotated[
        int, typer.Option("--limit", min=1, metavar="N", help="With --flow: at most this many cases.")
    ] = 1000,
) -> None:
    """List everything that happened in a case, repairs included."""
    if flow and (case or not xes):
        raise InvalidRequest("--flow NAME goes with --xes FILE and without a case; for one case leave --flow out")
    named = case or ("" if flow else "last")
    if xes:
        _write_xes(context, named, flow, limit, Path(xes))
        return

    async def ask(client: Client) -> list[HistoryEntry]:
        subject = await find_reference(client, named)
        found = await client.history(subject.case)
        return [each for each in found if not subject.item or subject.item in (each.item, str(each.item).split("[")[0])]

    entries = context.run(ask)
    if context.json:
        print_json(entries)
    elif not entries:
        say("Nothing has happened.")
    else:
        elements = {entry.item: entry.element for entry in entries if entry.item is not None and entry.element}
        rows = [_entry_row(entry, elements.get(entry.item, "") if entry.item else "") for entry in entries]
        print_table(("at", "by", "what", "about", "said"), rows)


def _write_xes(context: CommandContext, case: str, flow: str, limit: int, path: Path) -> None:
    check_file("--xes", path)
    text = context.run(lambda client: client.xes(case, flow=flow, limit=limit))
    path.write_text(text, encoding="utf-8")
    traces, events, is_cut = text.count("<trace>"), text.count("<event>"), xes_format.is_cut(text)
    if context.json:
        print_json({"file": str(path), "traces": traces, "events": events, "cut": is_cut})
        return
    say(f"{path}: {count_text(traces, 'trace')}, {count_text(events, 'event')}")
    if is_cut:
        say(f"{flow} has more cases, which are older; --limit N writes more of them")


def _entry_row(entry: HistoryEntry, element: str) -> tuple[str | Text, ...]:
    step = entry.exlet and entry.what not in REPAIRS
    shown = item_text(entry.item, element) if entry.item else entry.name
    about = f"{entry.exlet}: {entry.name}" if step else shown
    at = f"{short_time_text(entry.at)[5:]}.{entry.at % 1000:03}"
    return at, entry.by or entry.source, _styled(entry.what), about, entry.message


def _styled(what: str) -> Text:
    return Text(what, style="yellow" if what in REPAIRS else STYLES.get(what, ""))


@with_context
def raise_trigger(
    context: CommandContext,
    case: CaseArgument,
    trigger: Annotated[
        str,
        typer.Argument(
            metavar="[TRIGGER]",
            help="What happened; without it, list the triggers that rules know.",
            show_default=False,
        ),
    ] = "",
    item: ItemOption = "",
    about: Annotated[
        str,
        typer.Option("--data", metavar="VALUE", help="Data that rules see with it: JSON, or text.", show_default=False),
    ] = "",
    scenario: Annotated[
        str,
        typer.Option(
            "--scenario",
            metavar="TEXT",
            help="If no rule knows it: what the situation is, for whoever handles it.",
            show_default=False,
        ),
    ] = "",
    suggest: Annotated[
        str,
        typer.Option("--suggest", metavar="TEXT", help="If no rule knows it: what should be done.", show_default=False),
    ] = "",
) -> None:
    """Raise an exception for a case or an item."""
    if not trigger:
        _list_triggers(context, case, item)
        return
    value = json_or_text(about) if about else None

    async def ask(client: Client) -> DecisionView:
        subject = await find_reference(client, case, item)
        return await client.raise_trigger(
            subject.case, trigger, subject.item, data=value, scenario=scenario, suggestion=suggest
        )

    decision = context.run(ask)
    if context.json:
        print_json(decision)
    elif decision.state == "waiting":
        say(f"no rule knows {trigger!r}: {decision.about} is suspended, and an alert is raised for the administrator")
        say(f"mend it: mendflow mend {decision.about} --exlet EXLET [--if CONDITION]")
        say("who asked for what: mendflow worklist administration")
    else:
        say(decided_text(decision))


def _list_triggers(context: CommandContext, case: str, item: str) -> None:

    async def ask(client: Client) -> list[TriggerView]:
        subject = await find_reference(client, case, item)
        return await client.triggers(subject.case, subject.item)

    views = context.run(ask)
    if context.json:
        print_json(views)
    elif not views:
        say("No rule has a trigger; a trigger that no rule knows suspends the case until somebody mends it.")
    else:
        print_table(("trigger", "level", "task", "rules"), map(_trigger_row, views))


def _trigger_row(view: TriggerView) -> tuple[str, ...]:
    return view.trigger, view.level, view.task or "-", view.rules


@app.command(
    "mend",
    epilog="An exlet is a repair: a small flow whose steps give orders to the case, such as to run a job again with"
    " more memory.",
)
@with_context
def mend(
    context: CommandContext,
    case: CaseArgument,
    exlet: Exlet = "",
    item: ItemOption = "",
    condition: If = "",
    decision: Annotated[
        str,
        typer.Option(
            "--decision",
            metavar="DECISION",
            help="The decision that waits to be mended; default: the newest.",
            show_default=False,
        ),
    ] = "",
    in_set: Annotated[
        str,
        typer.Option(
            "--rules", metavar="SET", help="The rule set of the new rule; default: the flow's.", show_default=False
        ),
    ] = "",
    note: Note = "",
) -> None:
    """Run an exlet on a case now, and optionally make it a rule."""
    name, flow = exlet_of(exlet)

    async def ask(client: Client) -> DecisionView:
        subject = await find_reference(client, case, item)
        wish = RepairRequest(
            exlet=name, flow=flow, item=subject.item, decision=decision, condition=condition, rules=in_set, note=note
        )
        return await client.mend(subject.case, wish)

    made = context.run(ask)
    _say_decision(context, made)
    if flow is not None and not context.json:
        where = shown_name(made.rules or in_set or made.flow)
        say(f"{name} is now an exlet of {where}: it can be used again by this name")


@app.command("reject")
@with_context
def reject(
    context: CommandContext,
    decision: Annotated[str, typer.Argument(metavar="DECISION", help="The id of the wrong decision.")],
    exlet: Exlet = "",
    condition: If = "",
    note: Note = "",
    withdraw: Annotated[
        bool, typer.Option("--withdraw", help="End a request without --exlet: the choice stands. Needs --note.")
    ] = False,
) -> None:
    """Reject what a rule concluded, and run another exlet; without --exlet, ask an author to judge the choice."""
    if withdraw or not (exlet or condition):
        _ask_to_judge(context, RejectRequest(decision=decision, note=note, withdraw=withdraw))
        return
    name, flow = exlet_of(exlet)
    wish = RejectRequest(decision=decision, exlet=name, flow=flow, condition=condition, note=note)
    view = context.run(lambda client: client.reject_choice(wish))
    if view.state == "rejected" and not context.json:
        say(f"{view.about}:{view.item}: {view.exlet} was rejected, {name} takes its place")
    else:
        _say_decision(context, view)
    if not condition and not context.json:
        say("no rule was changed; --if CONDITION also makes a rule for later cases", err=True)


def _ask_to_judge(context: CommandContext, wish: RejectRequest) -> None:
    view = context.run(lambda client: client.reject_choice(wish))
    see = f"mendflow worklist administration {view.id}"
    said = (
        f"the choice of {view.exlet} stands" if wish.withdraw else f"an author is asked whether {view.exlet} is wrong"
    )
    print_answer(context.json, view, f"{said}: {see}")


def _say_decision(context: CommandContext, decision: DecisionView) -> None:
    print_answer(context.json, decision, decided_text(decision))


def decided_text(decision: DecisionView) -> str:
    about = f"{decision.about}:{decision.item}" if decision.item else decision.about
    by = f" by {rule_text(decision.rules, decision.rule)}" if decision.rule is not None else ""
    by = f" ordered by {decision.ordered_by}" if decision.ordered_by else by
    runs = f" as case {decision.exlet_case}" if decision.exlet_case else ""
    if not decision.exlet:
        trials = "".join(f"; {trial_text(trial)}" for trial in decision.trials)
        return f"{about}: no rule fits this failure; nothing is done{trials}"
    return f"{about}: {decision.exlet}{by}{runs}"


@patterns_app.callback()
@with_context
def patterns(context: CommandContext) -> None:
    """List the patterns of submission and of repair; add some."""
    if context.inner:
        return
    found = context.run(lambda client: client.patterns())
    if context.json:
        print_json(found)
        return
    conversations = [("conversation", each.name, each.messages, each.note) for each in found.conversations]
    repairs = [("repair", each.name, each.do.value, each.does) for each in found.repairs]
    print_table(("kind", "name", "runs as", "about"), [*conversations, *repairs])


@patterns_app.command("add")
@with_context
def add_patterns(
    context: CommandContext,
    file: Annotated[str, typer.Argument(metavar="FILE", help="A YAML file with conversations and repairs.")],
) -> None:
    """Add patterns from a file; a pattern of the same name is replaced."""
    given = read_patterns(flow_text(Path(file), file))
    found = context.run(lambda client: client.add_patterns(given), changes=True)
    if context.json:
        print_json(found)
    else:
        names = [each.name for each in given.conversations] + [each.name for each in given.repairs]
        say(f"{', '.join(names)} can be used from now on")


@compensations_app.callback()
@with_context
def compensations(context: CommandContext) -> None:
    """List which flow undoes which task; add or remove one."""
    if not context.inner:
        _say_compensations(context, context.run(lambda client: client.compensations()))


@compensations_app.command("add")
@with_context
def add_compensation(
    context: CommandContext,
    task: Annotated[str, typer.Argument(metavar="TASK", help="The name of a task, in any flow.")],
    flow: Annotated[
        str,
        typer.Argument(
            metavar="FLOW", help="The deployed flow that undoes it.", autocompletion=complete_from_server("flows")
        ),
    ],
) -> None:
    """Let a deployed flow undo a task, in cases that start from now on."""
    _say_compensations(context, context.run(lambda client: client.register_compensation(task, flow), changes=True))


@compensations_app.command("remove")
@with_context
def remove_compensation(
    context: CommandContext, task: Annotated[str, typer.Argument(metavar="TASK", help="The name of a task.")]
) -> None:
    """Remove the flow that undoes a task."""
    _say_compensations(context, context.run(lambda client: client.register_compensation(task), changes=True))


def _say_compensations(context: CommandContext, views: list[CompensationView]) -> None:
    if context.json:
        print_json(views)
    elif not views:
        say("No flow undoes a task yet; steps of a flow can say `compensation:` themselves.")
    else:
        rows = ((view.task, view.flow, view.author, short_time_text(view.at)) for view in views)
        print_table(("task", "undone by", "by", "since"), rows)


@levels_app.callback()
@with_context
def levels(context: CommandContext) -> None:
    """List the retry levels and the jobs that wait in them; drain one."""
    if context.inner:
        return
    views = context.run(lambda client: client.levels())
    if context.json:
        print_json(views)
    elif not views:
        say("There are no levels.")
    else:
        print_table(("level", "wait", "waiting", "next"), map(_level_row, views))


@levels_app.command("drain")
@with_context
def drain(
    context: CommandContext, level: Annotated[str, typer.Argument(metavar="LEVEL", help="The level's number, or all.")]
) -> None:
    """Retry now everything that waits in a level."""
    drained = context.run(lambda client: client.drain(level))
    if context.json:
        print_json(drained)
    else:
        say(f"{count_text(drained.let_go, 'waiting job')} {'is' if drained.let_go == 1 else 'are'} retried now")


def _level_row(view: LevelView) -> tuple[str, ...]:
    waiting = f"{view.waiting:,}" + (f" ({view.express:,} express)" if view.express else "")
    return str(view.level), duration_text(view.wait_ms), waiting, short_time_text(view.next_at)
