"""Commands that export cases to a file and import them."""

from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from mendflow.cli.command_context import CommandContext, with_context
from mendflow.cli.connection import open_store, run_async
from mendflow.cli.list_options import Condition
from mendflow.cli.options import complete_from_server
from mendflow.cli.printing import print_json, say
from mendflow.client import Client
from mendflow.client.files import cases_begun_by_messages, omitted_cases
from mendflow.core.model.errors import InvalidRequest, NotFound
from mendflow.core.model.import_reports import AddedDocuments, ImportReport
from mendflow.core.model.rules import DEFAULT_RULES, DEFAULT_RULES_WORDS
from mendflow.pages.formatting import count_text, size_text

app = typer.Typer()
T = TypeVar("T")
Store = Annotated[
    str,
    typer.Option("--store", metavar="URL", help="Open this store instead of asking a server.", show_default=False),
]


@app.command("export")
@with_context
def export(
    context: CommandContext,
    to: Annotated[str, typer.Option("--to", metavar="FILE", help="The archive to write.")],
    cases: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[CASE...]", help="Cases.", autocompletion=complete_from_server("cases"), show_default=False
        ),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="All cases, and flows and rules that no case uses.")
    ] = False,
    where: Condition = "",
    without_files: Annotated[bool, typer.Option("--without-files", help="Without stored files.")] = False,
    leave_out: Annotated[
        bool, typer.Option("--leave-out-unreachable", help="Without cases whose server cannot be reached.")
    ] = False,
    store: Store = "",
) -> None:
    """Write cases into an archive, with their journals and files."""
    if not (cases or everything or where):
        raise InvalidRequest("say which cases to export: by their ids, by --where CONDITION, or --all")

    async def write(client: Client) -> Path:
        return await client.export(
            to,
            cases or [],
            everything=everything,
            where=where,
            files=not without_files,
            leave_out_unreachable=leave_out,
        )

    path = _ask_server_or_store(context, store, write)
    size, missing = path.stat().st_size, omitted_cases(path)
    together = cases_begun_by_messages(path) if not everything else {}
    if context.json:
        print_json({"file": str(path), "bytes": size, "left_out": missing, "together": together})
        return
    say(f"{path} ({size_text(size)})")
    for flow, begun in together.items():
        all_of = f"all {len(begun):,} cases" if len(begun) > 1 else "the one case"
        say(f"In it: {all_of} of {flow} that messages began. They share its messages, so they go together.")
    if missing:
        say(f"left out, because their server could not be asked: {', '.join(missing)}")


@app.command("import")
@with_context
def import_(
    context: CommandContext,
    file: Annotated[str, typer.Argument(metavar="FILE", help="An archive that mendflow admin export wrote.")],
    as_new: Annotated[bool, typer.Option("--as-new", help="Give the cases new ids.")] = False,
    skip_existing: Annotated[bool, typer.Option("--skip-existing", help="Skip cases that exist already.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Resume unfinished cases immediately.")] = False,
    store: Store = "",
) -> None:
    """Import the cases of an archive, all of them or none."""
    if not Path(file).is_file():
        raise NotFound(f"there is no file {file}; check its name", path=file)

    async def give(client: Client) -> ImportReport:
        return await client.import_archive(file, as_new=as_new, skip_existing=skip_existing, resume=resume)

    report = _ask_server_or_store(context, store, give, begin=True)
    if context.json:
        print_json(report)
    else:
        _print_report(report)


def _ask_server_or_store(
    context: CommandContext, store: str, question: Callable[[Client], Awaitable[T]], *, begin: bool = False
) -> T:
    """Of a server, or of a store on which none runs. `begin`: where there is nothing yet, the data folder is begun."""
    if not store:
        return context.run(question, changes=begin, begin=begin)

    async def answer() -> T:
        async with open_store(store) as client:
            return await question(client)

    return run_async(answer())


def _print_report(report: ImportReport) -> None:
    more = report.cases - len(report.imported)
    along = f", with {more:,} that they called or that repaired them" if more > 0 else ""
    say(f"{count_text(len(report.imported), 'case')} imported{along}, {count_text(report.files, 'file')}")
    if report.present:
        say(f"{len(report.present):,} were here already")
    if report.skipped:
        say(f"left out, because they exist here with other content: {', '.join(report.skipped)}")
    for line in _added_lines(report.added):
        say(line)
    for note in report.notes:
        say(note)
    if report.suspended:
        say(f"not over, and suspended: {', '.join(report.suspended)}")
        say(f"If no other server runs them: mendflow resume {report.suspended[0]}")


def _added_lines(added: AddedDocuments) -> Iterator[str]:
    """What came along that holds for other cases, too."""
    rules = [DEFAULT_RULES_WORDS if name == DEFAULT_RULES else name for name in added.rules]
    for what, names in (
        ("flows", added.flows),
        ("rules", rules),
        ("compensations", added.compensations),
        ("patterns", added.patterns),
        ("storage elements", added.elements),
    ):
        if names:
            yield f"{what} added: {', '.join(names)}"
    if added.data_files:
        yield f"{count_text(added.data_files, 'file')} added to the catalogue"
