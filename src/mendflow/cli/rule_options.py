"""Arguments and options of the commands that are about rules."""

from typing import Annotated, Final

import msgspec
import typer

from mendflow.cli.option_groups import options_as
from mendflow.cli.options import complete_from_server, complete_words, one_of
from mendflow.core.model.repair import ExceptionType

TYPES = tuple(type.value for type in ExceptionType)

SetArgument = Annotated[
    str,
    typer.Argument(
        metavar="SET", help="A flow's name; `*`: the default rules.", autocompletion=complete_from_server("rule_sets")
    ),
]
From = Annotated[
    str,
    typer.Option(
        "--from",
        metavar="ID",
        help="The failure that the rule is for: a group of failures, or a decision.",
        show_default=False,
        autocompletion=complete_from_server("groups"),
    ),
]
If = Annotated[
    str, typer.Option("--if", metavar="CONDITION", help="The condition of the rule, in CEL.", show_default=False)
]
Do = Annotated[
    str,
    typer.Option(
        "--exlet", metavar="EXLET", help="An exlet's name, a file with one, or its steps.", show_default=False
    ),
]
InSet = Annotated[
    str,
    typer.Option(
        "--rules", metavar="SET", help="The rule set; default: that of the failure's flow.", show_default=False
    ),
]
Type = Annotated[
    str,
    typer.Option(
        "--type",
        metavar="TYPE",
        help="The type of exception, if --from is not given.",
        show_default=False,
        callback=one_of("--type", TYPES),
        autocompletion=complete_words(TYPES),
    ),
]
Task = Annotated[
    str,
    typer.Option("--task", metavar="TASK", help="The task, if --from is not given; `*` for all.", show_default=False),
]
OfType = Annotated[
    str,
    typer.Option(
        "--type",
        metavar="TYPE",
        help="The type of exception, if several trees have a rule of this number.",
        show_default=False,
        callback=one_of("--type", TYPES),
        autocompletion=complete_words(TYPES),
    ),
]
OfTask = Annotated[
    str,
    typer.Option(
        "--task",
        metavar="TASK",
        help="The task, if several trees have a rule of this number; `*` for all.",
        show_default=False,
    ),
]
RuleArgument = Annotated[
    int, typer.Argument(metavar="RULE", min=0, help="The rule's number, as `rules show` prints it.")
]
Passive = Annotated[bool, typer.Option("--passive", help="On trial: what it would do is recorded, but not done.")]
Note = Annotated[
    str, typer.Option("--note", "-m", metavar="TEXT", help="The reason, stored with it.", show_default=False)
]
Version = Annotated[
    int | None,
    typer.Option("--version", min=0, metavar="N", help="This version; default: the newest.", show_default=False),
]


class DraftOptions(msgspec.Struct, frozen=True):
    """A rule as it was described: for what, when it holds, and what it does."""

    at_hand: str = ""
    condition: str = ""
    exlet: str = ""
    in_set: str = ""
    type: str = ""
    task: str = ""


USUAL_DRAFT: Final = DraftOptions()
with_draft_options = options_as(
    "draft",
    {
        "at_hand": (From, ""),
        "condition": (If, ""),
        "exlet": (Do, ""),
        "in_set": (InSet, ""),
        "type": (Type, ""),
        "task": (Task, ""),
    },
    DraftOptions,
)
"""The command, with these options in place of its parameter `draft`."""
