"""Commands about storage elements: where files are, and the rules that map names to places."""

from pathlib import Path
from typing import Annotated

import typer
from msgspec.structs import replace

from mendflow.cli.command_context import CommandContext, with_context
from mendflow.cli.printing import print_answer, print_json, print_table, say
from mendflow.core.data.elements import normalize_element
from mendflow.core.data.name_mapping import place_of
from mendflow.core.data.paths import logical_name
from mendflow.core.model.data import StorageElement
from mendflow.core.model.errors import InvalidRequest, NotFound
from mendflow.formats.tfc import load_element, load_name_rules, write_cms, write_name_rules

app = typer.Typer()
storage = typer.Typer(invoke_without_command=True)
app.add_typer(storage, name="storage")

ElementArgument = Annotated[str, typer.Argument(metavar="ELEMENT", help="A storage element's name.")]


@storage.callback()
@with_context
def list_all(context: CommandContext) -> None:
    """List the storage elements; add, show or remove one."""
    if not context.inner:
        _list(context)


@storage.command("list")
@with_context
def list_elements(context: CommandContext) -> None:
    """List the storage elements."""
    _list(context)


def _list(context: CommandContext) -> None:
    found = context.run(lambda client: client.elements())
    if context.json:
        print_json(found)
    elif not found:
        say("There are no storage elements; add one with mendflow data storage add FILE, or with --name and --url.")
    else:
        print_table(("element", "url", "sites", "rules", "may be"), [_row(each) for each in found])


def _row(element: StorageElement) -> tuple[str, ...]:
    rules = f"{len(element.rules.to_physical)} of {element.protocol}" if element.rules is not None else ""
    return (
        element.name,
        element.url,
        ", ".join(element.sites) or "all",
        rules,
        "read" if element.read_only else "read and written",
    )


@storage.command("show")
@with_context
def show(context: CommandContext, element: ElementArgument) -> None:
    """Show a storage element."""
    found = context.run(lambda client: client.element(element))
    if context.json:
        print_json(found)
        return
    print_table(("element", "url", "sites", "rules", "may be"), [_row(found)])
    say(f"{found.streams} files at a time, {found.tries} tries, {found.timeout_ms} ms without a byte at most")
    for name, value in found.options.items():
        say(f"  {name}: {value}")


@storage.command("add")
@with_context
def add(
    context: CommandContext,
    file: Annotated[
        str, typer.Argument(metavar="[FILE]", help="The element's settings, in YAML.", show_default=False)
    ] = "",
    name: Annotated[str, typer.Option("--name", metavar="NAME", help="Its name.", show_default=False)] = "",
    url: Annotated[
        str, typer.Option("--url", metavar="URL", help="Where it is: a folder, s3://bucket, ...", show_default=False)
    ] = "",
    site: Annotated[
        list[str] | None,
        typer.Option("--site", metavar="SITE", help="A site near it; can be repeated.", show_default=False),
    ] = None,
    rules: Annotated[
        str,
        typer.Option(
            "--rules", metavar="FILE", help="A file with its name rules: YAML, or CMS's XML.", show_default=False
        ),
    ] = "",
    protocol: Annotated[
        str, typer.Option("--protocol", metavar="NAME", help="Use the rules of this protocol.", show_default=False)
    ] = "",
    read_only: Annotated[bool, typer.Option("--read-only", help="Only read from it.")] = False,
    change: Annotated[bool, typer.Option("--replace", help="Change an existing element.")] = False,
) -> None:
    """Add a storage element, from a file or by options."""
    if bool(file) == bool(name and url):
        raise InvalidRequest("give a FILE with the element's settings, or --name and --url")
    wish = load_element(Path(file)) if file else StorageElement(name=name, url=url)
    if rules:
        wish = replace(wish, rules=load_name_rules(Path(rules)))
    wish = replace(
        wish,
        sites=(*wish.sites, *(site or ())),
        protocol=protocol or wish.protocol,
        read_only=read_only or wish.read_only,
    )
    added = context.run(
        lambda client: client.put_element(normalize_element(wish), replace=change), changes=True, begin=True
    )
    if context.json:
        print_json(added)
    else:
        near = f", near {', '.join(added.sites)}" if added.sites else ""
        say(f"{added.name} is {added.url}{near}" + (", only read from" if added.read_only else ""))


@storage.command("remove")
@with_context
def remove(context: CommandContext, element: ElementArgument) -> None:
    """Remove a storage element. Its files are not deleted, but no longer found."""
    removed = context.run(lambda client: client.remove_element(element), changes=True)
    print_answer(context.json, removed, f"{removed.name} is removed; its files are not deleted")


@storage.command("place")
@with_context
def place(
    context: CommandContext,
    element: ElementArgument,
    name: Annotated[str, typer.Argument(metavar="NAME", help="A logical name; the file need not exist.")],
    site: Annotated[
        str, typer.Option("--site", metavar="SITE", help="As seen from this site.", show_default=False)
    ] = "",
) -> None:
    """Print the place of a logical name on an element, by its rules."""
    found = context.run(lambda client: client.element(element))
    say(place_of(found, logical_name(name), site))


@storage.command("rules")
@with_context
def rules(
    context: CommandContext,
    element: ElementArgument,
    cms: Annotated[bool, typer.Option("--cms", help="As CMS's XML.")] = False,
) -> None:
    """Print the rules of an element, as YAML or as CMS's XML."""
    found = context.run(lambda client: client.element(element))
    if found.rules is None:
        raise NotFound(f"{element} has no rules: a name lies at {found.url} followed by the name")
    print_answer(context.json, found.rules, (write_cms(found.rules) if cms else write_name_rules(found.rules)).rstrip())
