"""Arguments and options of the commands that are about rules."""

from typing import Annotated

import typer

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
