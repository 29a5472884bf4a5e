"""The pilot as a command of mendflow. All its words go to the pilot itself, which knows what they mean."""

import sys

import typer

from mendflow.pilot.main import main as pilot_main

app = typer.Typer()


@app.command(
    "pilot",
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []},
    add_help_option=False,
)
def pilot(ctx: typer.Context) -> None:
    """Run a pilot that takes jobs from a server."""
    sys.exit(pilot_main(list(ctx.args)))
