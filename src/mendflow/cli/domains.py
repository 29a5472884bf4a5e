"""Commands about other domains: which are connected, and connecting one."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from mendflow.cli.command_context import CommandContext, with_context
from mendflow.cli.printing import print_answer, print_json, print_table, say
from mendflow.cli.rights_options import with_rights
from mendflow.core.model.domains import (
    ConnectionSpec,
    DomainAddress,
    DomainReport,
    DomainRights,
    DomainsView,
    DomainView,
    InvitationSpec,
)
from mendflow.core.model.errors import InvalidRequest
from mendflow.pages.formatting import short_time_text, size_text

app = typer.Typer()
domains = typer.Typer(invoke_without_command=True)
app.add_typer(domains, name="domains")

NAMES_SHOWN = 10
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The other domain's name.")]


@domains.callback()
@with_context
def list_all(context: CommandContext) -> None:
    """List the connected domains; show, invite, connect or disconnect one."""
    if not context.inner:
        _list(context)


@domains.command("list")
@with_context
def list_domains(context: CommandContext) -> None:
    """List the connected domains: state, latency, capacity, and the work between them and this one."""
    _list(context)


def _list(context: CommandContext) -> None:
    view = context.run(lambda client: client.domains())
    if context.json:
        print_json(view)
        return
    _print_own(view)
    if not view.domains:
        say("It is connected with no other; mendflow domains invite NAME makes an invitation for one.")
        return
    heads = ("domain", "state", "latency", "free", "slots", "waiting", "sent", "held", "address", "reason")
    print_table(heads, [_row(each) for each in view.domains], fold=9)


def _print_own(view: DomainsView) -> None:
    charge = f", and charges {view.charge:g} for an hour of a CPU" if view.charge else ""
    say(f"This domain is called {view.name}{charge}.")


def _row(view: DomainView) -> tuple[str, ...]:
    report = view.report
    latency = f"{view.latency_ms:.0f} ms" if view.latency_ms else ""
    load = (str(report.slots_free), str(report.slots), str(report.waiting)) if report is not None else ("", "", "")
    return (view.name, view.state, latency, *load, str(view.sent), str(view.held), view.url, view.reason)


@domains.command("show")
@with_context
def show(context: CommandContext, name: NameArgument) -> None:
    """Show a domain: what it says of itself, and what it may do here."""
    view = context.run(lambda client: client.connected_domain(name))
    if context.json:
        print_json(view)
        return
    say(f"{view.name}: {view.state}" + (f" ({view.reason})" if view.reason else ""))
    if view.url:
        say(f"address: {view.url}")
    elif view.state != "invited":
        say("address: unknown; work can come from it, and none can be sent there")
    if view.told:
        say(f"says it is at: {_names(view.told)}")
    if view.heard_at:
        say(f"heard: {short_time_text(view.heard_at)}, answers in {view.latency_ms:.0f} ms")
    say(f"work: {view.sent} of ours there, {view.held} of its own here")
    if view.report is not None:
        for line in report_lines(view.report):
            say(line)
    for line in rights_lines(view.rights):
        say(line)


def report_lines(report: DomainReport) -> list[str]:
    lines = [
        f"slots: {report.slots_free} free of {report.slots}; {report.waiting} jobs wait, {report.running} run; of late"
        f" they waited {report.wait_ms / 1000:.0f} s"
    ]
    if (largest := report.largest) is not None:
        size = f"{largest.cpus:g} CPUs, {size_text(largest.memory_bytes)} memory, {size_text(largest.disk_bytes)} disk"
        lines.append(f"largest job: {size}, {largest.gpus} GPUs")
    named = {
        "platforms": report.platforms,
        "storage elements": report.elements,
        "flows": report.flows,
    }
    lines += [f"{what}: {_names(names)}" for what, names in named.items() if names]
    if report.logical_files:
        more = " or more" if report.files_cut else ""
        lines.append(f"logical files: {len(report.logical_files)}{more}: {_names(report.logical_files)}")
    if report.charge:
        lines.append(f"charge: {report.charge:g} for an hour of a CPU")
    if report.draining:
        lines.append("it takes no new work of ours: its administrator is disconnecting")
    return lines


def rights_lines(rights: DomainRights) -> list[str]:
    flows = "jobs and flows of its own" if rights.own_flows else ""
    named = f"our flows {_names(rights.flows)}" if rights.flows else ""
    lines = [f"may run here: {' and '.join(filter(None, (flows, named))) or 'nothing'}"]
    if rights.sites:
        lines.append(f"on pilots of: {_names(rights.sites)}")
    lines.append(f"at most: {rights.work_max} pieces of work, {size_text(rights.bytes_max)} of files")
    return lines


def _names(names: tuple[str, ...]) -> str:
    more = len(names) - NAMES_SHOWN
    return ", ".join(names[:NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")


@domains.command("invite")
@with_context
@with_rights
def invite(
    context: CommandContext,
    name: NameArgument,
    minutes: Annotated[int, typer.Option("--minutes", min=1, metavar="N", help="How long the invitation holds.")] = 60,
    url: Annotated[
        list[str] | None,
        typer.Option(
            "--url",
            metavar="URL",
            help="Where its servers are; default: where they say, if that is public.",
            show_default=False,
        ),
    ] = None,
    *,
    rights: DomainRights,
) -> None:
    """Invite a domain: print a token for its administrator."""
    spec = InvitationSpec(rights=rights, urls=tuple(url or ()), minutes=minutes)
    view = context.run(lambda client: client.invite_domain(name, spec), changes=True)
    if context.json:
        print_json(view)
        return
    say(view.token)
    say(f"It holds until {short_time_text(view.expires_at)}, and once. On a server of {name}:", err=True)
    say(f"  mendflow domains connect {view.domain} {view.url or 'URL'} --invitation FILE", err=True)


def _invitation(file: str) -> str:
    """What the other side's administrator has sent. Words of a command are seen by others on the machine, so it is
    none."""
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text()
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"{file} is no invitation: it is not a text") from error
    except OSError as error:
        raise InvalidRequest(
            f"the invitation in {file} cannot be read: {error.strerror}; --invitation wants the file with what"
            " `mendflow domains invite` printed, or - for standard input"
        ) from error
    if len(text.split()) != 1:
        raise InvalidRequest(
            "an invitation is one word, as mendflow domains invite prints it: give the file that has it by --invitation"
            " FILE, or the word itself on standard input"
        )
    return text.strip()


@domains.command("connect")
@with_context
@with_rights
def connect(
    context: CommandContext,
    name: NameArgument,
    url: Annotated[list[str], typer.Argument(metavar="URL...", help="Where servers of it are reached.")],
    invitation: Annotated[
        str,
        typer.Option(
            "--invitation",
            metavar="FILE",
            help="A file with its invitation; -: standard input.",
        ),
    ] = "-",
    own_url: Annotated[
        list[str] | None,
        typer.Option(
            "--own-url",
            metavar="URL",
            help="Where it reaches servers of ours; default: the one that is asked.",
            show_default=False,
        ),
    ] = None,
    *,
    rights: DomainRights,
) -> None:
    """Accept the invitation of a domain."""
    spec = ConnectionSpec(urls=tuple(url), token=_invitation(invitation), rights=rights, own_urls=tuple(own_url or ()))
    view = context.run(lambda client: client.connect_domain(name, spec), changes=True)
    more = view.reason or f"flows send work there by `domain: {name}`"
    print_answer(context.json, view, f"{name} is connected; {more}")


@domains.command("rights")
@with_context
@with_rights
def change_rights(
    context: CommandContext,
    name: NameArgument,
    *,
    rights: DomainRights,
) -> None:
    """Set what a connected domain may do here; what is not given gets its default."""
    view = context.run(lambda client: client.change_domain_rights(name, rights), changes=True)
    if context.json:
        print_json(view)
        return
    for line in rights_lines(view.rights):
        say(f"{name} {line}" if line.startswith("may") else f"  {line}")


@domains.command("address")
@with_context
def address(
    context: CommandContext,
    name: NameArgument,
    url: Annotated[list[str], typer.Argument(metavar="URL...", help="Where servers of it are reached.")],
) -> None:
    """Say where a connected domain is reached from now on."""
    view = context.run(lambda client: client.change_domain_address(name, DomainAddress(urls=tuple(url))), changes=True)
    print_answer(context.json, view, f"{name} is called at {' and '.join(url)} from now on")


@domains.command("charge")
@with_context
def charge(
    context: CommandContext,
    amount: Annotated[float, typer.Argument(min=0, metavar="AMOUNT", help="For an hour of a CPU; 0: nothing.")],
) -> None:
    """Say what an hour of a CPU costs in this domain."""
    view = context.run(lambda client: client.charge_domain(charge=amount), changes=True)
    if context.json:
        print_json(view)
    else:
        _print_own(view)


def _under_way(view: DomainView) -> str:
    """The work between the two, as far as there is some."""
    told = (
        (view.sent, "of our work there"),
        (view.retrying, "of our work that waits for its next try there"),
        (view.held, "of its work here"),
    )
    counts = [f"{number} {'piece' if number == 1 else 'pieces'} {what}" for number, what in told if number]
    return ", ".join(counts) or "nothing more"


@domains.command("disconnect")
@with_context
def disconnect(
    context: CommandContext,
    name: NameArgument,
    drain: Annotated[
        bool, typer.Option("--drain", help="When nothing is under way any more; this is the default.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="At once; what is under way there counts as lost.")] = False,
) -> None:
    """Disconnect a domain, or withdraw its invitation."""
    if drain and force:
        raise InvalidRequest("--drain waits for what is under way, and --force does not: give one of them")
    view = context.run(lambda client: client.disconnect_domain(name, force=force), changes=True)
    if view.state == "invited":
        sentence = f"the invitation of {name} is withdrawn"
    elif view.state == "draining" and not force:
        sentence = f"{name} is disconnected when nothing is under way any more: {_under_way(view)}"
    else:
        sentence = f"{name} is disconnected"
    if view.cases and view.state != "invited":
        sentence += f"; cases that need it to go on: {_names(view.cases)}"
    print_answer(context.json, view, sentence)
