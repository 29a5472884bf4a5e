"""The options of commands that list what a search finds."""

from typing import Annotated, Final

import msgspec
import typer

from mendflow.cli.option_groups import OptionTable, options_as
from mendflow.cli.options import complete_from_server

OfFlow = Annotated[
    str,
    typer.Option(
        "--flow",
        metavar="NAME",
        help="Only of this flow.",
        show_default=False,
        autocompletion=complete_from_server("flows"),
    ),
]
Limit = Annotated[int, typer.Option("--limit", min=1, metavar="N", help="Show at most this many.")]
Offset = Annotated[int, typer.Option("--offset", min=0, metavar="N", help="Skip this many.")]
Condition = Annotated[
    str,
    typer.Option(
        "--where", metavar="CONDITION", help="Only those for which this CEL condition holds.", show_default=False
    ),
]
Order = Annotated[
    str,
    typer.Option(
        "--order", metavar="NAME", help="Sort by this field; -NAME sorts in descending order.", show_default=False
    ),
]
After = Annotated[
    str,
    typer.Option(
        "--after",
        metavar="PLACE",
        help="Continue after this place, which the previous page printed.",
        show_default=False,
    ),
]
Count = Annotated[bool, typer.Option("--count", help="Print only how many there are.")]
CountBy = Annotated[
    str,
    typer.Option(
        "--count-by", metavar="NAME", help="Print how many there are for each value of this field.", show_default=False
    ),
]


class ListOptions(msgspec.Struct, frozen=True):
    """Which of them are listed, or that they are counted."""

    where: str = ""
    order: str = ""
    limit: int = 100
    offset: int = 0
    after: str = ""
    count: bool = False
    count_by: str = ""

    @property
    def is_count(self) -> bool:
        return self.count or bool(self.count_by)

    @property
    def is_searched(self) -> bool:
        """Whether it is not simply the newest."""
        return bool(self.where or self.order or self.after)


USUAL_LIST: Final = ListOptions()

_OPTIONS: Final[OptionTable] = {
    "where": (Condition, ""),
    "order": (Order, ""),
    "limit": (Limit, USUAL_LIST.limit),
    "offset": (Offset, 0),
    "after": (After, ""),
    "count": (Count, False),
    "count_by": (CountBy, ""),
}

with_list_options = options_as("list_options", _OPTIONS, ListOptions)
"""The command, with these options in place of its parameter `list_options`."""
