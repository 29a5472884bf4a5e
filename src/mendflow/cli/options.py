"""Options that many commands share, and the server and token that they select."""

import importlib
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
import typer

from mendflow.cli.option_groups import OptionTable, options_as
from mendflow.core.model.errors import InvalidRequest, NotFound

DATA_FOLDER = ".mendflow"
SERVER_VARIABLE, DATA_VARIABLE = "MENDFLOW_SERVER", "MENDFLOW_DATA_DIR"


def complete_from_server(what: str) -> Callable[[typer.Context, str], list[str]]:
    """Completion of an argument; the code that asks a server is loaded only when needed."""

    def offer(ctx: typer.Context, incomplete: str) -> list[str]:
        offers = importlib.import_module("mendflow.cli.completions")
        names: list[str] = getattr(offers, what)(ctx.params, incomplete)
        return names

    return offer


CaseArgument = Annotated[
    str, typer.Argument(metavar="CASE", help="A case's id, or `last`.", autocompletion=complete_from_server("cases"))
]
Server = Annotated[
    str,
    typer.Option(
        "--server",
        metavar="URL",
        envvar=SERVER_VARIABLE,
        help="The server; or several on one store: URL,URL.",
        show_default=False,
    ),
]
TokenFile = Annotated[
    str,
    typer.Option(
        "--token-file", metavar="FILE", help="A file with the token; default: MENDFLOW_TOKEN.", show_default=False
    ),
]
Project = Annotated[
    str,
    typer.Option(
        "--project",
        metavar="NAME",
        help="The project that it belongs to, if it is new; default: MENDFLOW_PROJECT, else the token's only one.",
        show_default=False,
    ),
]
FlowProject = Annotated[
    str,
    typer.Option(
        "--project",
        metavar="NAME",
        help="The project of the flow; default: its own, of a new one MENDFLOW_PROJECT, else the token's only one.",
        show_default=False,
    ),
]
Data = Annotated[
    str,
    typer.Option(
        "--data-dir",
        metavar="DIR",
        envvar=DATA_VARIABLE,
        help="The data folder; default: .mendflow here, or the nearest above.",
        show_default=False,
    ),
]
STORE_VARIABLE = "MENDFLOW_STORE"
Store = Annotated[
    str,
    typer.Option(
        "--store",
        metavar="URL",
        envvar=STORE_VARIABLE,
        help="The store; default: a file in the data folder.",
        show_default=False,
        show_envvar=True,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON to standard output.")]
Inputs = Annotated[
    list[str] | None,
    typer.Option(
        "--input", "-i", metavar="K=V", help="An input; a value @FILE is read from the file.", show_default=False
    ),
]
InputsFile = Annotated[
    str, typer.Option("--inputs", metavar="FILE", help="A JSON or YAML file with inputs.", show_default=False)
]
Slots = Annotated[
    int, typer.Option("--jobs", "-j", min=0, metavar="N", help="Jobs to run at the same time; 0: one per CPU.")
]
Report = Annotated[
    str,
    typer.Option(
        "--report", metavar="FILE", help="Write the HTML report here; default: in the data folder.", show_default=False
    ),
]
OutputDir = Annotated[
    str,
    typer.Option(
        "--output-dir", metavar="DIR", help="Write output files here; default: ./outputs/CASE.", show_default=False
    ),
]
Overwrite = Annotated[
    bool,
    typer.Option("--overwrite", help="Let output files replace files in --output-dir that no case had written."),
]


def _on_unhandled(help: str) -> Any:
    return typer.Option(
        "--on-unhandled",
        metavar="WORD",
        help=f"When something fails that no rule takes up: {help}.",
        show_default=False,
        callback=lambda value: one_of("--on-unhandled", ("fail", "hold"))(value),
        autocompletion=lambda incomplete: complete_words(("fail", "hold"))(incomplete),
    )


OnUnhandled = Annotated[str, _on_unhandled("fail, or hold the case for a person; default: as the flow says")]
OnUnhandledByDefault = Annotated[
    str,
    _on_unhandled("fail (default), or hold the case for a person, where neither its flow nor who started it says"),
]
LiveInputsMb = Annotated[
    int,
    typer.Option(
        "--live-inputs-mb",
        min=0,
        metavar="N",
        help="How much memory the inputs of each project's live cases may take. 0: any amount.",
    ),
]
Again = Annotated[
    list[str] | None,
    typer.Option(
        "--again",
        metavar="JOB",
        help="Run this job and all that depends on it, whatever is in the cache; may be repeated.",
        show_default=False,
    ),
]
Cached = Annotated[
    bool, typer.Option("--cached", help="Also use earlier results of jobs that do not declare inputs and files.")
]
NoCache = Annotated[bool, typer.Option("--no-cache", help="Run every job; use no earlier results.")]
Notify = Annotated[
    str,
    typer.Option(
        "--notify",
        metavar="ADDRESS",
        help="A URL that gets a POST, or a mail address, when the case ends.",
        show_default=False,
    ),
]
Quiet = Annotated[
    bool,
    typer.Option("--quiet", "-q", help="Show no progress, only the result, and what it waits for if that takes long."),
]
Keep = Annotated[bool, typer.Option("--keep", help="Keep the working folders of the jobs.")]


def one_of(word: str, allowed: Sequence[str]) -> Callable[[str], str]:
    """Validator of an option with a fixed set of words; empty means not given."""

    def checked(value: str) -> str:
        if value and value not in allowed:
            raise InvalidRequest(f"{word} {value!r} is not known; it is one of {', '.join(allowed)}")
        return value

    return checked


def complete_words(allowed: Sequence[str]) -> Callable[[str], list[str]]:
    """Completion of an option with a fixed set of words."""
    return lambda incomplete: [each for each in allowed if each.startswith(incomplete)]


def store_url() -> str:
    """The store for commands with an embedded server; empty: the one in the data folder."""
    return os.environ.get(STORE_VARIABLE, "")


def _data_folders() -> Iterator[Path]:
    """The data folders of this user here and above, the nearest first. What another user has put there is not opened:
    it might say what to run."""
    here = Path.cwd()
    for folder in (here, *here.parents):
        place = folder / DATA_FOLDER
        try:
            is_ours = place.stat().st_uid == os.getuid()
            if is_ours and ((place / "store.db").exists() or (place / "server.json").exists()):
                yield place
        except OSError:
            continue


class ServerTarget(msgspec.Struct, frozen=True):
    """Which server to ask: the one that was named, else the one on the data folder, else the folder itself."""

    server: str = ""
    token_file: str = ""
    data: str = ""

    def __post_init__(self) -> None:
        if self.server and self.data and self.data != os.environ.get(DATA_VARIABLE):
            raise InvalidRequest(
                f"--data-dir {self.data} and the server {self.server} name two places to ask; leave --data-dir out, or"
                f" --server and {SERVER_VARIABLE}"
            )

    @property
    def folder(self) -> Path:
        """The data folder with the cases that are meant: the one that was named, else the nearest in this folder or
        above it, as git does. Without any, the one that would be made here."""
        return self.own_folder if self.data else next(_data_folders(), self.own_folder)

    @property
    def own_folder(self) -> Path:
        """Where `run` and `serve` keep what they begin: never in a folder above that happens to have cases."""
        return Path(self.data or DATA_FOLDER).absolute()

    @property
    def above(self) -> Path | None:
        """The data folder, if it was found above this folder."""
        return None if self.server or store_url() or self.folder == self.own_folder else self.folder

    @property
    def has_store(self) -> bool:
        """Whether a store exists already."""
        return bool(store_url()) or (self.folder / "store.db").exists()

    def token(self) -> str:
        """The token, from a file or the environment; never from the command line, where other users could read it."""
        if not self.token_file:
            return os.environ.get("MENDFLOW_TOKEN", "")
        try:
            return Path(self.token_file).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise NotFound(f"cannot read the token file {self.token_file}; check that it exists") from error


TARGET: Final[OptionTable] = {"server": (Server, ""), "token_file": (TokenFile, ""), "data": (Data, "")}
USUAL_TARGET: Final = ServerTarget()

with_target = options_as("target", TARGET, ServerTarget)
"""The command, with these options in place of its parameter `target`."""
