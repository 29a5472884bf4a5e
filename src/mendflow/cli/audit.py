"""Commands about the audit log: list who did what, verify the record, export it."""

import hashlib
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from mendflow.cli.command_context import CommandContext, with_context
from mendflow.cli.printing import print_json, print_table, say
from mendflow.core.model.audit import AuditEntry, AuditPage, AuditQuery, ChainView
from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.principals import DEFAULT_PROJECT
from mendflow.core.model.units import duration_ms
from mendflow.core.schedules.due_times import instant_of
from mendflow.pages.formatting import count_text, time_text

app = typer.Typer()
audit = typer.Typer(invoke_without_command=True)
app.add_typer(audit, name="audit")

BROKEN = 1
LINES_SHOWN = 100

Since = Annotated[
    str,
    typer.Option("--since", metavar="TIME", help="From then on: 7d ago, or a date: 2026-05-01.", show_default=False),
]
Until = Annotated[
    str, typer.Option("--until", metavar="TIME", help="Before then, written the same way.", show_default=False)
]


@audit.callback()
@with_context
def list_entries(
    context: CommandContext,
    since: Since = "",
    until: Until = "",
    who: Annotated[str, typer.Option("--who", metavar="NAME", help="Only of this caller.", show_default=False)] = "",
    operation: Annotated[
        str,
        typer.Option("--operation", metavar="NAME", help="Only this operation, such as start.", show_default=False),
    ] = "",
    without: Annotated[
        str,
        typer.Option("--without", metavar="NAME", help="Not this operation, such as store_file.", show_default=False),
    ] = "",
    object: Annotated[
        str,
        typer.Option(
            "--object", metavar="ID", help="Only on this case, flow, rule set... and what is in it.", show_default=False
        ),
    ] = "",
    project: Annotated[
        str, typer.Option("--project", metavar="NAME", help="Only on what is of this project.", show_default=False)
    ] = "",
    outcome: Annotated[
        str,
        typer.Option(
            "--outcome", metavar="OUTCOME", help="Only done, refused, failed or unanswered.", show_default=False
        ),
    ] = "",
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, metavar="N", help="At most so many.")] = (
        LINES_SHOWN
    ),
) -> None:
    """List who did what, the newest first; verify that record, or export it."""
    if context.inner:
        return
    query = AuditQuery(
        since=_moment("--since", since),
        until=_moment("--until", until),
        who=who,
        operation=operation,
        without=without,
        object=object,
        project=project,
        outcome=outcome,
        limit=limit,
    )
    rows, more = _find(context, query)
    if context.json:
        print_json(rows)
        return
    if not rows:
        say("Nothing is on record that fits. mendflow serve and mendflow ui write it; mendflow run does not.")
        return
    _print_entries(rows)
    if more:
        say(f"there is more: --limit N, or --until {time_text(rows[-1].at)!r}")


def _find(context: CommandContext, query: AuditQuery) -> tuple[list[AuditEntry], bool]:
    """A page may be short although more follows."""
    rows: list[AuditEntry] = []
    while True:
        page: AuditPage = context.run(lambda client, asked=query: client.find_audit(asked))  # type: ignore[misc]  # the default binds the query
        rows += page.rows
        if not page.next or len(rows) >= query.limit:
            return rows[: query.limit], bool(page.next)
        query = msgspec.structs.replace(query, after=page.next)


def _print_entries(entries: list[AuditEntry]) -> None:
    """Print a table. So that a line has room for the object, it has the project only if one is not the default, and the
    server only if there are several."""
    projects = {entry.project for entry in entries} - {"", DEFAULT_PROJECT}
    servers = {entry.server for entry in entries}
    left_out = {*(() if projects else ("project",)), *(() if len(servers) > 1 else ("server",))}
    rows = [{head: text for head, text in _cells(entry).items() if head not in left_out} for entry in entries]
    heads = list(rows[0])
    print_table(heads, [list(row.values()) for row in rows], fold=heads.index("object"))


def _cells(entry: AuditEntry) -> dict[str, str]:
    outcome = f"{entry.outcome}: {entry.code}" if entry.code else entry.outcome
    if entry.left_out:
        outcome += f" (and {entry.left_out} more)"
    named = [each for each in (entry.object, entry.made if entry.made != entry.object else "") if each]
    return {
        "at": time_text(entry.at),
        "who": entry.who,
        "from": entry.source,
        "operation": entry.operation,
        "object": " -> ".join(named),
        "project": entry.project,
        "outcome": outcome,
        "request": entry.request,
        "server": entry.server,
    }


@audit.command("verify")
@with_context
def verify(
    context: CommandContext,
    against: Annotated[
        str,
        typer.Option("--against", metavar="FILE", help="Also compare with an earlier export.", show_default=False),
    ] = "",
) -> None:
    """Read the whole record, and say whether anything in it was cut or changed."""
    chains = context.run(lambda client: client.verify_audit())
    if against:
        told = _differences(context, against, chains)
        chains = [_compared(each, problem) for each, problem in zip(chains, told, strict=True)]
    if context.json:
        print_json(chains)
    elif not chains:
        say("Nothing is on record. mendflow serve and mendflow ui write it; mendflow run does not.")
    else:
        for chain in chains:
            say(_sentence(chain))
    if any(chain.problem for chain in chains):
        raise typer.Exit(BROKEN)


def _sentence(chain: ChainView) -> str:
    cut = f" after {chain.cut:,} that went by age" if chain.cut else ""
    if chain.problem:
        return f"{chain.server}: BROKEN: {chain.problem}"
    told = f"{chain.server}: {count_text(chain.entries, 'entry', 'entries')}{cut}, "
    last = f"the last is {chain.sha256}" if chain.sha256 else "none is there"
    if not chain.unrecorded:
        return f"{told}whole; {last}"
    used = f"{chain.unrecorded} times" if chain.unrecorded > 1 else "once"
    return (
        f"{told}none was cut or changed; {last}. Not all that was done is in it: {used} a server was used here that"
        f" writes none, such as that of mendflow run, the last time from {time_text(chain.unrecorded_at)} on"
    )


def _compared(chain: ChainView, problem: str) -> ChainView:
    return msgspec.structs.replace(chain, problem=chain.problem or problem)


def _differences(context: CommandContext, against: str, chains: list[ChainView]) -> list[str]:
    """Of each chain, what an earlier export has and the record has no more, or otherwise."""
    try:
        known = list(_numbered(Path(against)))
    except (OSError, msgspec.MsgspecError) as error:
        raise InvalidRequest(f"{against} cannot be read as an export of the audit log: {error}") from None
    with tempfile.TemporaryDirectory(prefix="mendflow-") as folder:
        path = context.run(lambda client: client.export_audit(Path(folder) / "now.jsonl"))
        now = {(server, number): sha256 for server, number, sha256 in _numbered(path)}
    cut = {chain.server: chain.cut for chain in chains}
    found: dict[str, str] = {}
    for server, number, sha256 in known:
        if number > cut.get(server, 0) and now.get((server, number)) != sha256:
            found.setdefault(server, f"entry {number} is not the one in {against}")
    if gone := sorted(found.keys() - cut.keys()):
        raise InvalidRequest(f"the chain of {gone[0]}, which is in {against}, is not there any more")
    return [found.get(chain.server, "") for chain in chains]


def _numbered(path: Path) -> Iterator[tuple[str, int, str]]:
    with path.open("rb") as lines:
        for line in lines:
            stored = line.rstrip(b"\n")
            entry = msgspec.json.decode(stored, type=AuditEntry)
            yield entry.server, entry.number, hashlib.sha256(stored).hexdigest()


@audit.command("export")
@with_context
def export(
    context: CommandContext,
    file: Annotated[str, typer.Argument(metavar="FILE", help="The file to write, as JSON lines.")],
    since: Since = "",
    until: Until = "",
) -> None:
    """Write the record into a file, one entry in each line; keep it elsewhere to compare with later."""
    begin, end = _moment("--since", since), _moment("--until", until)
    path = context.run(lambda client: client.export_audit(file, since=begin, until=end))
    with path.open("rb") as lines:
        count = sum(1 for _ in lines)
    if context.json:
        print_json({"file": str(path), "entries": count})
    else:
        say(f"{path}: {count_text(count, 'entry', 'entries')}")


def _moment(option: str, text: str) -> int:
    if not text:
        return 0
    passed = duration_ms(text.removesuffix(" ago"))
    found = time.time_ns() // 1_000_000 - passed if passed is not None else instant_of(text, UTC)
    if found is None:
        raise InvalidRequest(f"{option} {text!r} is no time: write 7d for a week ago, or a date such as 2026-05-01")
    return max(0, found)
