"""`python -m experiments.paper` repeats the paper's experiments, draws its figures, and judges its claims."""

from typing import Annotated

import typer

from experiments.command import run_command
from experiments.paper.claims.judging import summary_text
from experiments.paper.report import PaperReport, paper
from mendflow.cli.exit_codes import ExitCode
from mendflow.cli.options import Json, Quiet
from mendflow.cli.printing import print_json, print_table, say
from mendflow.cli.sim import FirstSeed, Processes, Seeds, check_output_folder, print_written, progress_printer
from mendflow.pages.formatting import count_text
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
        folder=check_output_folder(out),
        jobs=processes or usable_cpus(),
        figures=tuple(figure or ()),
        tell=progress_printer(quiet),
    )
    if json:
        print_json(report)
    else:
        print_claims(report)
        print_written(report.written)
    raise typer.Exit(ExitCode.OK if all(claim.holds or claim.open for claim in report.claims) else ExitCode.CASE_FAILED)


def print_claims(report: PaperReport) -> None:
    rows = [(each.id, each.verdict, f"{each.seen} [holds if: {each.holds_if}]") for each in report.claims]
    print_table(("claim", "holds", "seen here"), rows, fold=2, whole=True)
    say(f"{summary_text(report.claims)}, after {count_text(report.runs, 'run')}")


if __name__ == "__main__":
    run_command(repeat_paper, "experiments.paper")
