"""The options that say what a connected domain may do here; several commands have them."""

from typing import Annotated, Final

import typer

from mendflow.cli.option_groups import OptionTable, options_as
from mendflow.core.model.domains import DomainRights
from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.units import SIZE_EXAMPLES, size_bytes

DEFAULTS = DomainRights()
_OPTIONS: Final[OptionTable] = {
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


def _rights(
    *, flow: list[str] | None, own_flows: bool, site: list[str] | None, work_max: int, bytes_max: str
) -> DomainRights:
    return DomainRights(
        flows=tuple(flow or ()),
        own_flows=own_flows,
        sites=tuple(site or ()),
        work_max=work_max,
        bytes_max=_bytes(bytes_max),
    )


def _bytes(text: str) -> int:
    if (found := size_bytes(text)) is None:
        raise InvalidRequest(f"--bytes-max {text!r} is not a size: write one such as {SIZE_EXAMPLES}")
    return found


with_rights = options_as("rights", _OPTIONS, _rights)
"""The command, with these options in place of its parameter `rights`."""
