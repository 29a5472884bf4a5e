"""Commands that print lists: cases, items, jobs, pilots, servers."""

import time
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer
from rich.text import Text

from mendflow.cli.command_context import CommandContext, with_context
from mendflow.cli.connection import has_server
from mendflow.cli.list_options import USUAL_LIST, Condition, Limit, ListOptions, OfFlow, Offset, with_list_options
from mendflow.cli.options import CaseArgument, complete_words, one_of, store_url
from mendflow.cli.printing import print_json, print_table, say, state_text, table_width
from mendflow.client import Client
from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.jobs import Job, JobState
from mendflow.core.model.views import (
    CaseQuery,
    CaseStatus,
    CaseView,
    CountsView,
    ItemState,
    ItemView,
    JobQuery,
    PilotView,
    ServerView,
)
from mendflow.lazy import LazyModule
from mendflow.pages.attempts import is_mended, ran_ms, started_attempts
from mendflow.pages.formatting import duration_text, one_line, short_time_text, size_text

if TYPE_CHECKING:
    from mendflow.cli import case_texts
else:
    case_texts = LazyModule("mendflow.cli.case_texts")

app = typer.Typer()

CASE_WORDS, ITEM_WORDS = get_args(CaseStatus), get_args(ItemState)
LIVE = ("running", "suspended")
NARROW, GIVEN_CHARS_NARROW = 130, 24
"""In less room, the list of cases has short times, so that there is room for why."""

JOB_WORDS = {("waiting" if state is JobState.AVAILABLE else state.value): state.value for state in JobState}
"""States that people may type: those of items, and those of jobs."""


def _state(words: tuple[str, ...], name: str = "--state", help: str = "Only in this state.") -> Any:
    return typer.Option(
        name,
        metavar=name.strip("-").upper(),
        help=help,
        show_default=False,
        callback=one_of(name, words),
        autocompletion=complete_words(words),
    )


Name = Annotated[str, typer.Option("--name", metavar="NAME", help="Only with this name.", show_default=False)]


@app.command("cases")
@with_context
@with_list_options
def cases(
    context: CommandContext,
    flow: OfFlow = "",
    status: Annotated[str, _state(CASE_WORDS, "--status", "Only with this status.")] = "",
    repairs: Annotated[bool, typer.Option("--repairs", help="Include the cases of exlets.")] = False,
    long: Annotated[
        bool, typer.Option("--long", "-l", help="Also show the flow, the project and who started the case.")
    ] = False,
    list_options: ListOptions = USUAL_LIST,
) -> None:
    """List the cases, newest first."""
    where = list_options.where
    query = CaseQuery(
        flow=flow,
        status=status,
        limit=list_options.limit,
        offset=list_options.offset,
        where=where if repairs or flow or "mends" in where else _without_repairs(where),
        order=list_options.order,
        after=list_options.after,
    )
    if list_options.is_count:
        _print_counts(
            context, context.run(lambda client: client.count_cases(query, by=list_options.count_by)), list_options
        )
        return
    page = context.run(lambda client: client.find_cases(query))
    views = page.rows
    _print_next_page(page.next, len(views), list_options)
    if context.json:
        print_json(views)
    elif not views:
        say("There are no such cases.")
    else:
        idle = not (store_url() or has_server(context.target))
        _print_cases(views, idle=idle, long=long)
        own = [view.id for view in views if view.status in LIVE and not (view.parent or view.mends or view.engine)]
        if idle and own:
            say(f"No server runs here now; continue with mendflow resume {own[0]}, or mendflow serve", err=True)


@app.command("items")
@with_context
def items(
    context: CommandContext,
    case: CaseArgument = "last",
    state: Annotated[str, _state(ITEM_WORDS)] = "",
    name: Name = "",
    where: Condition = "",
    limit: Limit = 1000,
    offset: Offset = 0,
    runs: Annotated[bool, typer.Option("--runs", help="Show each run of items that were restarted.")] = False,
) -> None:
    """List the items of a case, in the order in which they last began."""

    async def find(client: Client) -> list[ItemView]:
        """All pages: with a condition, one may be short."""
        found, after = list[ItemView](), ""
        while True:
            left = limit - len(found)
            page = await client.find_items(
                case, state=state, name=name, where=where, limit=left, offset=0 if after else offset, after=after
            )
            found, after = found + page.rows, page.next
            if not after or len(found) >= limit:
                return found

    views = context.run(find)
    if context.json:
        print_json(views)
    elif not views:
        say("There are no such items.")
    else:
        _print_items(views, runs=runs)
        if len(views) == limit:
            say(f"There may be more: --offset {offset + limit}", err=True)


@app.command("jobs")
@with_context
@with_list_options
def jobs(
    context: CommandContext,
    of_case: Annotated[
        str, typer.Argument(metavar="[CASE]", help="Only of this case, as --case.", show_default=False)
    ] = "",
    case: Annotated[str, typer.Option("--case", metavar="CASE", help="Only of this case.", show_default=False)] = "",
    state: Annotated[str, _state(tuple(JOB_WORDS))] = "",
    name: Name = "",
    owner: Annotated[
        str, typer.Option("--owner", metavar="OWNER", help="Only of this owner.", show_default=False)
    ] = "",
    pilot: Annotated[
        str, typer.Option("--pilot", metavar="PILOT", help="Only jobs that this pilot runs now.", show_default=False)
    ] = "",
    attempts: Annotated[
        int, typer.Option("--attempts", min=0, metavar="N", help="Only jobs with at least this many attempts.")
    ] = 0,
    list_options: ListOptions = USUAL_LIST,
) -> None:
    """List jobs, by case, state, name, owner or pilot, or by any condition."""
    if case and of_case and case != of_case:
        raise InvalidRequest(f"{of_case} and --case {case} are two cases; give one of them")
    query = JobQuery(
        case=case or of_case,
        state=JOB_WORDS.get(state, ""),
        name=name,
        owner=owner,
        pilot=pilot,
        attempts_min=attempts,
        limit=list_options.limit,
        offset=list_options.offset,
        where=list_options.where,
        order=list_options.order,
        after=list_options.after,
    )
    if list_options.is_count:
        _print_counts(
            context, context.run(lambda client: client.count_jobs(query, by=list_options.count_by)), list_options
        )
        return
    page = context.run(lambda client: client.find_jobs(query))
    views = page.rows
    _print_next_page(page.next, len(views), list_options)
    if context.json:
        print_json(views)
    elif not views:
        say("There are no such jobs.")
    else:
        heads: tuple[str, ...] = ("job", "item", "state", "tries", "pilot", "created")
        rows = [_job_row(view) for view in views]
        if any(view.sizing is not None for view in views):
            heads = (*heads, "asks for")
            rows = [(*row, _learned_text(view)) for row, view in zip(rows, views, strict=True)]
        print_table(heads, rows, fold=1)


@app.command("pilots")
@with_context
def pilots(context: CommandContext) -> None:
    """List the pilots."""
    views = context.run(lambda client: client.pilots())
    if context.json:
        print_json(views)
    elif not views:
        say("There are no pilots; start one with mendflow pilot --server URL.")
    else:
        print_table(
            ("pilot", "state", "host", "free", "cpus", "memory", "gpus", "containers", "cache", "seen"),
            map(_pilot_row, views),
            fold=2,
        )


@app.command("servers")
@with_context
def servers(context: CommandContext) -> None:
    """List the servers on the store."""
    views = context.run(lambda client: client.servers())
    if context.json:
        print_json(views)
    else:
        heads = ("server", "state", "address", "cases", "waiting", "running", "pilots", "beat")
        print_table(heads, map(_server_row, views), fold=2)


def _print_counts(context: CommandContext, found: CountsView, list_options: ListOptions) -> None:
    if context.json:
        print_json(found.counts)
    elif not list_options.count_by:
        say(f"{sum(found.counts.values()):,}")
    else:
        rows = sorted(found.counts.items(), key=lambda each: (-each[1], each[0]))
        print_table((list_options.count_by, "count"), ((name or "-", f"{number:,}") for name, number in rows))


def _without_repairs(where: str) -> str:
    """Leave out repair cases, so that a case with many repairs stays in the list."""
    return f"({where}) && mends == null" if where else "mends == null"


def _print_next_page(place: str, found: int, list_options: ListOptions) -> None:
    """Print how to continue, on standard error, so that standard output stays clean for programs."""
    if place and found < list_options.limit:
        say(f"Not everything was searched yet; continue with --after {place}", err=True)
    elif place and list_options.is_searched:
        say(f"There may be more: --after {place}", err=True)


def _print_cases(views: list[CaseView], *, idle: bool, long: bool = False) -> None:
    """The columns for mended, cached and cancelled items, for the purpose of a case, for what it was given and for why
    it waits or failed appear only if they have values. `idle`: nobody runs what has not ended."""
    more, counted = ("flow", "project", "by"), ("done", "mended", "failed", "cached", "cancelled")
    heads = ("case", "status", *more, "started", "took", *counted, "given", "for", "why")
    is_narrow = table_width() < NARROW
    rows = [_case_row(view, idle=idle, is_narrow=is_narrow) for view in views]
    wanted = {place for place, head in enumerate(heads) if long or head not in more}
    for word in ("mended", "cached", "cancelled"):
        if not any(getattr(count, word) for view in views for count in view.counts):
            wanted.discard(heads.index(word))
    wanted -= {place for place in range(-3 + len(heads), len(heads)) if not any(row[place] for row in rows)}
    kept = sorted(wanted)
    last = heads[kept[-1]]
    fold = -1 if last in ("given", "for", "why") else kept.index(heads.index("flow")) if long else 0
    print_table([heads[place] for place in kept], [[row[place] for place in kept] for row in rows], fold=fold)


def purpose_of(view: CaseView) -> str:
    """Why a case exists, if it serves another, or whose it is."""
    if view.engine:
        return f"engine {view.engine}"
    if view.mends:
        about = f":{view.mends_item}" if view.mends_item else ""
        return f"mends {view.mends}{about}"
    return f"called by {view.parent}" if view.parent else ""


def _case_row(view: CaseView, *, idle: bool, is_narrow: bool) -> tuple[str | Text, ...]:
    now = int(time.time() * 1000)
    words = ("done", "mended", "failed", "cached", "cancelled")
    is_stopped = view.status == "running" and (idle or view.stopped) and not view.engine
    took = duration_text(max((view.ended_at or now) - view.started_at, 0))
    return (
        str(view.id),
        state_text("held" if view.held else "stopped" if is_stopped else view.status),
        view.flow,
        view.project,
        view.owner or "-",
        short_time_text(view.started_at)[5:16] if is_narrow else short_time_text(view.started_at),
        took,
        *(f"{sum(getattr(count, word) for count in view.counts):,}" for word in words),
        one_line(case_texts.given_text(view), GIVEN_CHARS_NARROW if is_narrow else 0),
        purpose_of(view),
        case_texts.why_text(view),
    )


def _print_items(views: list[ItemView], *, runs: bool) -> None:
    """The column of runs appears only if something was restarted; with `runs`, each earlier run has a row before the
    last."""
    heads, rows = ["item", "kind", "state", "runs", "tries", "took", "remark"], list[list[str | Text]]()
    for view in views:
        rows += [_run_row(view, number) for number in range(len(view.earlier_runs))] if runs else []
        rows.append(_item_row(view))
    kept = [head for head in heads if head != "runs" or any(view.earlier_runs for view in views)]
    print_table(kept, [[row[heads.index(head)] for head in kept] for row in rows])


def _item_row(view: ItemView) -> list[str | Text]:
    took = "-" if (spent := ran_ms(view)) is None else duration_text(spent)
    remark = view.fault.message if view.fault else view.cache_reason or view.reason or view.command
    runs, tries = str(len(view.earlier_runs) + 1), str(len(started_attempts(view)) or "-")
    return [
        view.shown,
        view.kind,
        state_text("mended" if is_mended(view) else view.state),
        runs,
        tries,
        took,
        remark,
    ]


def _run_row(view: ItemView, number: int) -> list[str | Text]:
    run = view.earlier_runs[number]
    spent = run.ran_ms if run.job else max(run.ended_at - run.created_at, 0)
    took = duration_text(spent) if run.ended_at else "-"
    remark = run.fault.message if run.fault else "restarted"
    return [
        view.shown,
        view.kind,
        state_text(run.state),
        f"run {number + 1}",
        str(run.attempts or "-"),
        took,
        remark,
    ]


def _job_row(job: Job) -> tuple[str | Text, ...]:
    word = "waiting" if job.state is JobState.AVAILABLE else job.state.value
    state = "suspended" if job.suspended and not job.finished else word
    pilot = str(job.pilot or (job.history[-1].pilot if job.history else "-"))
    return (
        str(job.id),
        job.spec.shown,
        state_text(state),
        str(len(job.history)),
        pilot,
        short_time_text(job.created_at),
    )


def _learned_text(job: Job) -> str:
    """The memory and the time that a job asks for, if they were learned."""
    needs = job.spec.resources
    memory = size_text(needs.memory_bytes) if needs.memory_auto and needs.memory_bytes else ""
    time = duration_text(needs.wall_ms) if needs.wall_auto and needs.wall_ms else ""
    return ", ".join(each for each in (memory, time) if each) or "-"


def _server_row(view: ServerView) -> tuple[str | Text, ...]:
    figures = (f"{number:,}" for number in (view.cases, view.waiting, view.running, view.pilots))
    beat = "now" if view.own else f"{duration_text(view.beat_ms_ago)} ago"
    return view.id, state_text(view.state), view.url or "-", *figures, beat


def _pilot_row(view: PilotView) -> tuple[str | Text, ...]:
    has = view.capacity
    host = f"{view.host} ({view.site})" if view.site else view.host
    free, seen = f"{view.free_slots}/{has.slots}", f"{duration_text(view.seen_ms_ago)} ago"
    cache = f"{size_text(view.cache_bytes)} ({view.cache_files})" if view.cache_files else "-"
    figures = (f"{has.cpus:g}", size_text(has.memory_bytes), str(has.gpus), has.runtime or "-", cache)
    return str(view.id), state_text(view.state), host, free, *figures, seen
