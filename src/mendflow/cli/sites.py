"""Commands about sites: where pilots are submitted, and how many."""

from pathlib import Path
from typing import Annotated

import typer

from mendflow.cli.command_context import CommandContext, with_context
from mendflow.cli.printing import print_answer, print_json, print_table, say
from mendflow.core.model.sites import SiteView
from mendflow.formats.sites import load_site
from mendflow.pages.formatting import short_time_text

app = typer.Typer()
sites = typer.Typer(invoke_without_command=True)
app.add_typer(sites, name="sites")

ENDINGS_SHOWN = 10
SiteArgument = Annotated[str, typer.Argument(metavar="SITE", help="A site's name.")]


@sites.callback()
@with_context
def list_all(context: CommandContext) -> None:
    """List the sites that pilots are submitted to; add, pause or remove one."""
    if not context.inner:
        _list(context)


@sites.command("list")
@with_context
def list_sites(context: CommandContext) -> None:
    """List the sites, with their pilots."""
    _list(context)


def _list(context: CommandContext) -> None:
    views = context.run(lambda client: client.sites())
    if context.json:
        print_json(views)
    elif not views:
        say("There are no sites; describe one in a file and run mendflow admin sites add FILE.")
    else:
        heads = ("site", "batch", "state", "coming", "idle", "busy", "most", "left this hour", "last trouble")
        print_table(heads, [_row(view) for view in views], fold=8)


def _row(view: SiteView) -> tuple[str, ...]:
    site = view.site
    counts = (view.inactive, view.idle, view.busy, site.max_pilots, view.left_this_hour)
    trouble = view.paused.why if view.paused is not None else view.trouble
    return (site.name, site.batch.kind, view.state, *map(str, counts), trouble)


@sites.command("show")
@with_context
def show(context: CommandContext, site: SiteArgument) -> None:
    """Show a site: its pilots, why it has that many, and how its last pilots ended."""
    view = context.run(lambda client: client.site(site))
    if context.json:
        print_json(view)
        return
    state = f"{view.state} ({view.paused.why})" if view.paused is not None else view.state
    say(f"{view.site.name}: {state}")
    say(f"pilots: {view.inactive} submitted, {view.idle} idle, {view.busy} busy; {view.left_this_hour} more this hour")
    for reason in view.reasons:
        say(f"  {reason}")
    if view.trouble and view.paused is None:
        say(f"  The last problem: {view.trouble}")
    _warn(view)
    if view.submissions:
        rows = [(s.name, s.state, s.purpose, short_time_text(s.since), s.native, s.pilot) for s in view.submissions]
        print_table(("pilot", "state", "for", "since", "number there", "known as"), rows)
    if view.endings:
        endings = reversed(view.endings[-ENDINGS_SHOWN:])
        print_table(
            ("over", "how", "at", "why"), [(e.name, e.how, short_time_text(e.at), e.why) for e in endings], fold=3
        )


@sites.command("add")
@with_context
def add(
    context: CommandContext, file: Annotated[str, typer.Argument(metavar="FILE", help="The site's settings, in YAML.")]
) -> None:
    """Add a site, or change its settings."""
    site = load_site(Path(file))
    view = context.run(lambda client: client.put_site(site), changes=True)
    if context.json:
        print_json(view)
    else:
        say(f"{site.name} gets up to {site.max_pilots} pilots, {site.submissions_per_hour} an hour")
        _warn(view)


def _warn(view: SiteView) -> None:
    for warning in view.warnings:
        say(f"  Warning: {warning}")


@sites.command("pause")
@with_context
def pause(
    context: CommandContext,
    site: SiteArgument,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why.", show_default=False)] = "",
) -> None:
    """Submit no more pilots to a site; running pilots continue."""
    _print_view(context, context.run(lambda client: client.pause_site(site, reason=reason), changes=True), "is paused")


@sites.command("resume")
@with_context
def resume(context: CommandContext, site: SiteArgument) -> None:
    """Submit pilots to a paused site again."""
    _print_view(context, context.run(lambda client: client.resume_site(site), changes=True), "goes on")


@sites.command("remove")
@with_context
def remove(
    context: CommandContext,
    site: SiteArgument,
    force: Annotated[bool, typer.Option("--force", help="Cancel its pilots, even those that run jobs.")] = False,
) -> None:
    """Remove a site, as soon as its last pilot has ended."""
    view = context.run(lambda client: client.remove_site(site, force=force), changes=True)
    left = len(view.submissions)
    _print_view(context, view, f"is removed with its last pilot; there are {left}" if left else "is removed")


def _print_view(context: CommandContext, view: SiteView, what: str) -> None:
    print_answer(context.json, view, f"{view.site.name} {what}")
