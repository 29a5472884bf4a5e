"""`python -m experiments.beyond` plays the scenarios that the paper left for later."""

from typing import Annotated

import typer

from experiments.beyond.report import beyond
from experiments.command import run_command
from mendflow.cli.options import Json, Quiet
from mendflow.cli.printing import print_json, print_table, say
from mendflow.cli.sim import FirstSeed, Seeds, check_output_folder, print_written, progress_printer


def play_scenarios(
    scenario: Annotated[
        list[str] | None,
        typer.Option("--scenario", metavar="NAME", help="Only this one; may be repeated.", show_default=False),
    ] = None,
    jobs: Annotated[
        int,
        typer.Option("--jobs", min=0, metavar="N", help="How many jobs, where it may be any number; 0: as it says."),
    ] = 0,
    seeds: Seeds = 3,
    seed: FirstSeed = 1,
    out: Annotated[str, typer.Option("--out", metavar="DIR", help="Where figures and data go.")] = "beyond",
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Play what the paper left for later: caches, policies, lifetimes, priorities, sites, domains, a million jobs."""
    chosen = tuple(dict.fromkeys(scenario or ()))
    report = beyond(
        scenarios=chosen,
        jobs=jobs,
        seed=seed,
        seeds=seeds,
        folder=check_output_folder(out),
        tell=progress_printer(quiet),
    )
    if json:
        print_json(report)
        return
    for table, sentence in zip(report.tables, report.sentences, strict=True):
        say(table.title)
        print_table(table.heads, table.rows)
        say(f"{sentence}\n")
    print_written(report.written)


if __name__ == "__main__":
    run_command(play_scenarios, "experiments.beyond")
