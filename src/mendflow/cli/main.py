"""The command line.

The group takes the commands from the table and loads a module only when its command is used; help and completion of
command names need the table only. Help is laid out here, the same for all commands: an option, what it takes and what
it does, in two columns; a long option has a line of its own, and nothing is cut."""

import importlib
import sys
from difflib import get_close_matches
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from mendflow.cli.coercion import skip_needless_coercion
from mendflow.cli.command_table import COMMANDS, ELSEWHERE, GROUPS, CommandEntry
from mendflow.cli.exit_codes import is_debugging, report_error
from mendflow.cli.option_hints import FLOW_FILES, RUN, with_option_hints
from mendflow.core.model.errors import InvalidRequest
from mendflow.version import VERSION

COMPLETE_VARIABLE = "_MENDFLOW_COMPLETE"
WIDTH_MAX = 100


class LazyGroup(TyperGroup):
    """A group whose commands are in a table; help does not load them."""

    def __init__(self, *, entries: dict[str, CommandEntry] | None = None, **settings: Any) -> None:
        super().__init__(**settings)
        self._is_listing = False
        self._entries = COMMANDS if entries is None else entries
        for name, entry in self._entries.items():
            self.commands[name] = TyperCommand(name=name, help=entry.help, rich_help_panel=entry.panel or None)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        entry = super().get_command(ctx, cmd_name)
        return entry if entry is None or self._is_listing else load(cmd_name, self._entries)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Answer a word of another tool with our command."""
        on_top = self._entries is COMMANDS
        if on_top and args and args[0] not in self.commands and args[0] in ELSEWHERE:
            raise InvalidRequest(f"mendflow has no command `{args[0]}`; {ELSEWHERE[args[0]]}")
        if on_top and args and args[0].partition(":")[0].endswith(FLOW_FILES):
            raise InvalidRequest(f"`{args[0]}` is no command; to run the flow: mendflow run {args[0]}")
        if args and args[0] not in self.commands and not args[0].startswith("-"):
            raise InvalidRequest(self._unknown(str(ctx.command_path), args[0]))
        return super().resolve_command(ctx, args)

    def _unknown(self, path: str, word: str) -> str:
        near = get_close_matches(word, self.commands, n=1)
        meant = f"did you mean `{near[0]}`?" if near else f"{path} --help lists those there are"
        return f"{path} has no command `{word}`; {meant}"

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Options of other tools that stand where the command should; and `help`, with or without a command."""
        if args[:1] == ["help"] and "help" not in self.commands:
            args = [*args[1:], "--help"]
        word = args[0].partition("=")[0] if args else ""
        own = {each for param in self.params for each in param.opts} | set(ctx.help_option_names)
        if self._entries is COMMANDS and word.startswith("-") and word not in own:
            hint = f"; of run: {RUN[word]}" if word in RUN else ""
            raise InvalidRequest(f"a command comes before {word}, as in mendflow run FLOW{hint}")
        return super().parse_args(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        self._is_listing = True
        try:
            super().format_help(ctx, formatter)
        finally:
            self._is_listing = False

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        self._is_listing = True
        try:
            return super().shell_complete(ctx, incomplete)
        finally:
            self._is_listing = False


def load(name: str, entries: dict[str, CommandEntry] = COMMANDS) -> Any:
    """The command from its module's `app`, or the group from a table."""
    if entries is COMMANDS and name in GROUPS:
        group = LazyGroup(name=name, help=COMMANDS[name].help, no_args_is_help=True, entries=GROUPS[name])
        return with_plain_help(group)
    module = importlib.import_module(entries[name].module)
    found = skip_needless_coercion(typer.main.get_group(module.app).commands[name])
    return with_plain_help(with_option_hints(found))


def with_plain_help(command: Any) -> Any:
    """The command, and those below it, with help that is readable at 80 columns."""
    command.rich_markup_mode = None
    command.context_settings = {"max_content_width": WIDTH_MAX, **command.context_settings}
    if hasattr(command, "commands"):
        command.format_commands = lambda ctx, formatter: write_commands(command, ctx, formatter)
        for inner in command.commands.values():
            with_plain_help(inner)
    return command


def write_commands(group: Any, ctx: Any, formatter: Any) -> None:
    """The commands of a group under their headings, each with its whole sentence."""
    panels: dict[str, list[tuple[str, str]]] = {}
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        if command is not None and not command.hidden:
            panel = getattr(command, "rich_help_panel", None)
            heading = panel if isinstance(panel, str) else "Commands"
            panels.setdefault(heading, []).append((name, _first_sentences(command.help or "")))
    for heading, rows in panels.items():
        with formatter.section(heading):
            formatter.write_dl(rows)


def _first_sentences(text: str) -> str:
    return " ".join(text.strip().split("\n\n")[0].split())


root = typer.Typer(
    cls=LazyGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": WIDTH_MAX},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"mendflow {VERSION}")
        raise typer.Exit


@root.callback()
def mendflow(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Job flows that mend themselves: run them, watch them, ask why."""
    assert not version


def command() -> Any:
    """The whole command line. `mendflow admin completion` installs completion; the root has no options for it."""
    made = skip_needless_coercion(typer.main.get_command(root))
    made.params = [param for param in made.params if param.name not in ("install_completion", "show_completion")]
    return with_plain_help(made)


def main(args: list[str] | None = None) -> NoReturn:
    if args == ["version"]:
        args = ["--version"]
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal without Unicode gets question marks, not a crash
    try:
        command()(args=args, prog_name="mendflow", complete_var=COMPLETE_VARIABLE)
    except (Exception, KeyboardInterrupt) as error:  # the edge: print any error as a sentence
        if is_debugging():
            raise
        sys.exit(report_error(error))
    sys.exit(0)
