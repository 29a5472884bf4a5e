"""The options that say what a connected domain may do here; several commands have them."""

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer

from mendflow.cli.command_context import CommandContext
from mendflow.core.model.domains import DomainRights
from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.units import SIZE_EXAMPLES, size_bytes

DEFAULTS = DomainRights()
_OPTIONS: dict[str, tuple[Any, object]] = {
    "flow": (
        Annotated[
            list[str] | None,
            typer.Option(
                "--flow", metavar="FLOW", help="A flow of ours that it may start; `*`: any.", show_default=False
            ),
        ],
        None,
    ),
    "own_flows": (
        Annotated[
            bool, typer.Option("--own-flows/--no-own-flows", help="Whether it may send jobs and flows of its own.")
        ],
        DEFAULTS.own_flows,
    ),
    "site": (
        Annotated[
            list[str] | None,
            typer.Option("--site", metavar="SITE", help="Its work gets pilots of this site only.", show_default=False),
        ],
        None,
    ),
    "work_max": (
        Annotated[
            int,
            typer.Option("--work-max", min=0, metavar="N", help="How many pieces of work it may have here at a time."),
        ],
        DEFAULTS.work_max,
    ),
    "bytes_max": (
        Annotated[
            str, typer.Option("--bytes-max", metavar="SIZE", help="How large the files of its work may be together.")
        ],
        f"{DEFAULTS.bytes_max >> 30} GiB",
    ),
}


def with_rights(command: Callable[..., None]) -> Callable[..., None]:
    """The command, with these options in place of its parameter `rights`."""

    @functools.wraps(command)
    def run_with_rights(
        context: CommandContext,
        *,
        flow: list[str] | None,
        own_flows: bool,
        site: list[str] | None,
        work_max: int,
        bytes_max: str,
        **words: Any,
    ) -> None:
        rights = DomainRights(
            flows=tuple(flow or ()),
            own_flows=own_flows,
            sites=tuple(site or ()),
            work_max=work_max,
            bytes_max=_bytes(bytes_max),
        )
        command(context, rights=rights, **words)

    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        parameters += _parameters() if parameter.name == "rights" else [parameter]
    run_with_rights.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # what inspect looks for
    return run_with_rights


def _parameters() -> list[inspect.Parameter]:
    return [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, (annotation, default) in _OPTIONS.items()
    ]


def _bytes(text: str) -> int:
    if (found := size_bytes(text)) is None:
        raise InvalidRequest(f"--bytes-max {text!r} is not a size: write one such as {SIZE_EXAMPLES}")
    return found
