"""`python -m experiments.paper` repeats the paper's experiments, draws its figures, and judges its claims."""

from typing import Annotated

import typer

from experiments.command import run_command
from experiments.paper.claims.judging import summed_up
from experiments.paper.report import Report, paper
from mendflow.cli.exits import Exit
from mendflow.cli.options import Json, Quiet
from mendflow.cli.printing import print_json, print_table, say
from mendflow.cli.sim import FirstSeed, Processes, Seeds, checked_out, print_written, teller
from mendflow.pages.words import count_text
from mendflow.pilot.environment import usable_cpus


def repeat_paper(
    seeds: Seeds = 5,
    seed: FirstSeed = 1,
    figure: Annotated[
        list[int] | None,
        typer.Option("--figure", metavar="N", help="Only this figure, 7 to 12; may be repeated.", show_default=False),
    ] = None,
    processes: Processes = 0,
    out: Annotated[str, typer.Option("--out", metavar="DIR", help="Where figures and data go.")] = "paper",
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Repeat the experiments of the paper, draw its figures, and compare its claims with the results."""
    report = paper(
        seeds=seeds,
        first_seed=seed,
        folder=checked_out(out),
        jobs=processes or usable_cpus(),
        figures=tuple(figure or ()),
        tell=teller(quiet),
    )
    if json:
        print_json(report)
    else:
        print_claims(report)
        print_written(report.written)
    raise typer.Exit(Exit.OK if all(claim.holds or claim.open for claim in report.claims) else Exit.CASE_FAILED)


def print_claims(report: Report) -> None:
    rows = [(each.id, each.verdict, f"{each.seen} [holds if: {each.holds_if}]") for each in report.claims]
    print_table(("claim", "holds", "seen here"), rows, fold=2, whole=True)
    say(f"{summed_up(report.claims)}, after {count_text(report.runs, 'run')}")


if __name__ == "__main__":
    run_command(repeat_paper, "experiments.paper")
