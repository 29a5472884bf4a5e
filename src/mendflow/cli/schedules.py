"""Commands about schedules: list, add, show, pause, resume, remove, trigger, backfill."""

from datetime import UTC, tzinfo
from typing import Annotated, TypeVar

import typer

from mendflow.cli.command_context import CommandContext, with_context
from mendflow.cli.connection import has_server
from mendflow.cli.deployment import demand_project
from mendflow.cli.flow_needs import warn_of_needs
from mendflow.cli.inputs import read_inputs, upload_inputs
from mendflow.cli.options import FlowProject, complete_from_server
from mendflow.cli.printing import print_answer, print_json, print_table, say
from mendflow.client import Client
from mendflow.core.model.errors import Conflict, InvalidRequest
from mendflow.core.model.flow import Flow
from mendflow.core.model.flow_triggers import CATCH_UPS, OVERLAPS
from mendflow.core.model.ids import Instant
from mendflow.core.model.schedules import BackfillView, ScheduleSpec, ScheduleView
from mendflow.core.model.units import DURATION_EXAMPLES, duration_ms
from mendflow.core.model.values import Value
from mendflow.core.model.views import CaseView
from mendflow.core.schedules.due_times import DueTimes, instant_of
from mendflow.core.schedules.spec_checks import spec_flaws, when_text
from mendflow.formats.time_zones import zone_or_flaw

W = TypeVar("W", bound=str)
app = typer.Typer()
schedules = typer.Typer(invoke_without_command=True)
app.add_typer(schedules, name="schedules")

EVENTS_SHOWN = 10
TIMES_SHOWN = 20
NameArgument = Annotated[str, typer.Argument(metavar="SCHEDULE", help="A schedule's name.")]


@schedules.callback()
@with_context
def list_all(context: CommandContext) -> None:
    """List the schedules that start cases by the clock; add, pause or backfill one."""
    if not context.inner:
        _list(context)


@schedules.command("list")
@with_context
def list_schedules(context: CommandContext) -> None:
    """List the schedules: when they are due next, and their last cases."""
    _list(context)


def _list(context: CommandContext) -> None:
    views = context.run(lambda client: client.schedules())
    if context.json:
        print_json(views)
        return
    if not views:
        say("There are no schedules; see mendflow schedules add --help, or `on: {schedule: ...}` in a flow.")
        return
    heads = ("schedule", "flow", "when", "zone", "state", "next", "last case", "its state", "problem")
    print_table(heads, [_row(view) for view in views], fold=8)
    _warn_if_not_served(views[0])


def _row(view: ScheduleView) -> tuple[str, ...]:
    spec, times = view.spec, _times(view.spec)
    coming = _shown(times, view.next[0]) if view.next else ""
    last = (view.last_case, view.last_status)
    return (spec.name, spec.flow, when_text(spec), spec.timezone, view.state, coming, *last, view.problem)


@schedules.command("add")
@with_context
def add(
    context: CommandContext,
    flow: Annotated[
        str,
        typer.Argument(metavar="FLOW", help="A deployed flow's name.", autocompletion=complete_from_server("flows")),
    ],
    name: Annotated[
        str,
        typer.Option(
            "--name",
            metavar="NAME",
            help="A name for the schedule, or one that it has, to change it; default: the flow's.",
            show_default=False,
        ),
    ] = "",
    cron: Annotated[
        str,
        typer.Option(
            "--cron", metavar="EXPRESSION", help='When, such as "30 2 * * 1-5" or @daily.', show_default=False
        ),
    ] = "",
    every: Annotated[
        str, typer.Option("--every", metavar="TIME", help="Or how often, such as 10 min.", show_default=False)
    ] = "",
    timezone: Annotated[
        str, typer.Option("--timezone", metavar="ZONE", help="Whose time is meant, such as Europe/Berlin.")
    ] = "UTC",
    input: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            "-i",
            metavar="NAME=VALUE",
            help="An input of each case; it may use ${{ schedule.date }} and ${{ schedule.time }}.",
            show_default=False,
        ),
    ] = None,
    catch_up: Annotated[
        str, typer.Option("--catch-up", metavar="WHICH", help="Missed times to start: skip, latest or all.")
    ] = "latest",
    overlap: Annotated[
        str,
        typer.Option(
            "--overlap", metavar="HOW", help="While an earlier case runs: wait, skip, allow or replace (cancel it)."
        ),
    ] = "wait",
    begin: Annotated[
        str, typer.Option("--from", metavar="DATE", help="Nothing is due before this.", show_default=False)
    ] = "",
    end: Annotated[
        str, typer.Option("--until", metavar="DATE", help="Nothing is due after this.", show_default=False)
    ] = "",
    paused: Annotated[bool, typer.Option("--paused", help="Add it paused; `resume` has it begin.")] = False,
    project: FlowProject = "",
) -> None:
    """Start cases of a flow by the clock, or change a schedule."""
    zone = _zone(timezone)
    spec = ScheduleSpec(
        name=name or flow,
        flow=flow,
        cron=cron,
        every_ms=_duration(every) if every else 0,
        timezone=timezone,
        catch_up=_choice(catch_up, CATCH_UPS, "--catch-up"),
        overlap=_choice(overlap, OVERLAPS, "--overlap"),
        starts_at=_instant(begin, zone, "--from"),
        ends_at=_instant(end, zone, "--until", end=True),
        paused=paused,
    )
    if flaws := [f"{field}: {flaw}" for field, flaw in spec_flaws(spec)]:
        raise InvalidRequest("; ".join(flaws))

    async def put(client: Client) -> ScheduleView:
        if not name and any(each.spec.name == flow for each in await client.schedules()):
            raise Conflict(
                f"there is a schedule {flow} already; to change it say --name {flow}, else take another name"
            )
        deployed = await client.flow(flow)
        demand_project(deployed, project)
        meant = deployed.flow
        values = await _inputs(client, meant, input or []) if meant is not None else {}
        if meant is not None:
            await warn_of_needs(client, meant)
        return await client.put_schedule(_with_inputs(spec, values))

    view = context.run(put, changes=True, begin=True)
    if context.json:
        print_json(view)
        return
    say(f"{spec.name} starts {flow}: {when_text(spec)}, {timezone}")
    for file_input in (each for each, value in view.spec.inputs.items() if _has_file(value)):
        say(
            f"  input {file_input}: its file as it is now; every case gets that. After a change add the schedule again."
        )
    _print_next(view)
    _warn_if_not_served(view)


def _has_file(value: Value) -> bool:
    if isinstance(value, dict):
        return "$file" in value or any(map(_has_file, value.values()))
    return isinstance(value, list) and any(map(_has_file, value))


def _with_inputs(spec: ScheduleSpec, values: dict[str, Value]) -> ScheduleSpec:
    fields = {field: getattr(spec, field) for field in ScheduleSpec.__struct_fields__}
    return ScheduleSpec(**{**fields, "inputs": values})


async def _inputs(client: Client, flow: Flow, pairs: list[str]) -> dict[str, Value]:
    """What cases are given: expressions as they are, all else by the types that the flow declares."""
    later = {name: text for name, _, text in (pair.partition("=") for pair in pairs) if "${{" in text}
    now = [pair for pair in pairs if pair.partition("=")[0] not in later]
    if unknown := sorted(later.keys() - flow.inputs.keys()):
        there = ", ".join(flow.inputs) or "none"
        raise InvalidRequest(f"the flow {flow.name} has no input {', '.join(unknown)}; its inputs are: {there}")
    declared = {name: each for name, each in flow.inputs.items() if name not in later}
    values = await upload_inputs(client, flow, read_inputs(declared, now, "", flow=str(flow.name)))
    return {**values, **later}


@schedules.command("show")
@with_context
def show(context: CommandContext, name: NameArgument) -> None:
    """Show a schedule: its next five times, and what became of the last ones."""
    view = context.run(lambda client: client.schedule(name))
    if context.json:
        print_json(view)
        return
    spec, times = view.spec, _times(view.spec)
    of_flow = f", by `on:` of flow {spec.flow}" if view.of_flow else ""
    say(f"{spec.name}: {view.state}; starts {spec.flow}, {when_text(spec)}, {spec.timezone}{of_flow}")
    say(f"  catch-up: {spec.catch_up}; overlap: {spec.overlap}")
    for input_name, value in spec.inputs.items():
        say(f"  input {input_name}: {value}")
    _print_next(view)
    if view.problem:
        say(f"  Problem: {view.problem}")
    if view.backfilling:
        say(f"  {view.backfilling} past times of a backfill are still to be started")
    if view.history:
        rows = [
            (_shown(times, each.due), each.what, str(each.count), each.case, each.reason)
            for each in view.history[:EVENTS_SHOWN]
        ]
        print_table(("due", "what", "times", "case", "why"), rows, fold=4)
    _warn_if_not_served(view)


@schedules.command("pause")
@with_context
def pause(context: CommandContext, name: NameArgument) -> None:
    """Start nothing at due times until the schedule is resumed; cases that run go on."""
    view = context.run(lambda client: client.pause_schedule(name), changes=True)
    print_answer(context.json, view, f"{name} is paused")


@schedules.command("resume")
@with_context
def resume(context: CommandContext, name: NameArgument) -> None:
    """Continue a paused schedule from now; `backfill` starts the times that passed."""
    view = context.run(lambda client: client.resume_schedule(name), changes=True)
    if context.json:
        print_json(view)
        return
    say(f"{name} goes on")
    _print_next(view)
    _warn_if_not_served(view)


@schedules.command("remove")
@with_context
def remove(context: CommandContext, name: NameArgument) -> None:
    """Remove a schedule; its cases stay."""
    view = context.run(lambda client: client.remove_schedule(name), changes=True)
    print_answer(context.json, view, f"{name} is removed; its cases stay")


@schedules.command("trigger")
@with_context
def trigger(context: CommandContext, name: NameArgument) -> None:
    """Start a case now, with the inputs of the schedule, whatever else runs."""

    async def start(client: Client) -> CaseView:
        case = await client.trigger_schedule(name)
        await warn_of_needs(client, await client.flow_of(case.id))
        return case

    view = context.run(start, changes=True, begin=True)
    print_answer(context.json, view, f"{view.id} is started")
    if not context.json and not has_server(context.target):
        say(f"no server runs here; mendflow resume {view.id} runs it, or mendflow serve", err=True)


@schedules.command("backfill")
@with_context
def backfill(
    context: CommandContext,
    name: NameArgument,
    begin: Annotated[str, typer.Option("--from", metavar="DATE", help="The first date or time.")],
    end: Annotated[str, typer.Option("--to", metavar="DATE", help="The last date or time; a date is the whole day.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list what would be started.")] = False,
) -> None:
    """Start a case for each past due time of a range that has none yet, the oldest first."""

    async def plan(client: Client) -> tuple[BackfillView, ScheduleView]:
        return await client.backfill_schedule(name, begin, end, dry_run=dry_run), await client.schedule(name)

    view, schedule = context.run(plan, changes=not dry_run)
    if context.json:
        print_json(view)
        return
    new = [each for each in view.times if not each.case]
    verb = "would be started" if dry_run else "are started, the oldest first"
    say(f"{len(new)} of {len(view.times)} due times of {name} {verb}; {len(view.times) - len(new)} have a case already")
    for each in view.times[:TIMES_SHOWN]:
        say(f"  {each.text}  {each.case or 'new'}")
    if len(view.times) > TIMES_SHOWN:
        say(f"  and {len(view.times) - TIMES_SHOWN} more, up to {view.times[-1].text}")
    if not dry_run:
        _warn_if_not_served(schedule)


def _print_next(view: ScheduleView) -> None:
    times = _times(view.spec)
    if view.next:
        say(f"  next: {', '.join(_shown(times, at) for at in view.next)}")


def _warn_if_not_served(view: ScheduleView) -> None:
    if view.not_served:
        say(view.not_served, err=True)


def _times(spec: ScheduleSpec) -> DueTimes:
    zone = zone_or_flaw(spec.timezone)
    return DueTimes(spec, UTC if isinstance(zone, str) else zone)


def _shown(times: DueTimes, at: Instant) -> str:
    """With the offset of the zone: two times of an hour that is shown twice differ."""
    return times.local(at).isoformat(sep=" ", timespec="minutes" if at % 60_000 == 0 else "seconds")


def _zone(name: str) -> tzinfo:
    zone = zone_or_flaw(name)
    if isinstance(zone, str):
        raise InvalidRequest(f"--timezone: {zone}")
    return zone


def _duration(text: str) -> int:
    made = duration_ms(text)
    if made is None:
        raise InvalidRequest(f"--every {text!r:.60} is not a time; write one like {DURATION_EXAMPLES}")
    return made


def _instant(text: str, zone: tzinfo, option: str, *, end: bool = False) -> Instant:
    if not text:
        return 0
    found = instant_of(text, zone, end=end)
    if found is None:
        raise InvalidRequest(f"{option} {text!r:.60} is no date or time; write one like 2026-01-31 or 2026-01-31T02:00")
    return found


def _choice(text: str, words: tuple[W, ...], option: str) -> W:
    for word in words:
        if word == text:
            return word
    raise InvalidRequest(f"{option} {text!r:.60} is not one of {', '.join(words)}")
