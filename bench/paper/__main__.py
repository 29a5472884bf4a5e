"""`python -m bench.paper` repeats what the figures need and prints what became of the claims; `--variants` does so with
other values for what the paper does not say; `--write` does both, and makes the page and its figures."""

import os
import shutil
import sys
import tempfile
from pathlib import Path

from bench.paper.page import refreshed
from bench.paper.variants import played_variants
from experiments.paper import paper
from experiments.paper.figures import FIGURES_BY_NUMBER

ROOT = Path(__file__).resolve().parents[2]
PAGE = "docs/understand/experiments.md"
FIGURES = "docs/understand/experiments"
SEEDS = 5


def main(words: list[str]) -> int:
    cores = os.cpu_count() or 1
    if "--variants" in words:
        played_variants(processes=cores, tell=print)
        return 0
    with tempfile.TemporaryDirectory() as made:
        report = paper(seeds=SEEDS, folder=Path(made), jobs=cores, figures=tuple(FIGURES_BY_NUMBER), tell=print)
        for each in report.claims:
            print(each.id, "holds:" if each.holds else "does not hold:", each.seen)
        if "--write" in words:
            keep(Path(made), ROOT / FIGURES)
            variants = played_variants(processes=cores, tell=print)
            page = ROOT / PAGE
            page.write_text(refreshed(page.read_text(), report, seeds=SEEDS, variants=variants), encoding="utf-8")
    return 0


def keep(made: Path, folder: Path) -> None:
    """What the page shows, and the numbers behind it."""
    folder.mkdir(exist_ok=True)
    for path in sorted(made.iterdir()):
        if path.suffix == ".svg" or path.name == "results.csv":
            shutil.copyfile(path, folder / path.name)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
