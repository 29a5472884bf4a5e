"""The example of variant calling, as a person runs it: killed in the middle, repaired by the default rules, and with a
sample added."""

import os
import signal
import time
from pathlib import Path

import pytest

from tests.e2e.analyst import Analyst
from tests.patience import PATIENCE_S

EXAMPLE = Path(__file__).parents[2] / "examples" / "variants"

pytestmark = pytest.mark.genomics


class Geneticist(Analyst):
    def found(self) -> dict[str, list[str]]:
        """The variants in the table, by sample, as the truth writes them."""
        table: dict[str, list[str]] = {}
        for line in (self.folder / "results" / "variants.tsv").read_text().splitlines()[1:]:
            sample, position, reference, variant, _ = line.split("\t")
            table.setdefault(sample, []).append(f"{position} {reference} {variant}")
        return table

    def truth(self, *samples: str) -> dict[str, list[str]]:
        return {each: (self.folder / f"data/{each}.truth.txt").read_text().splitlines() for each in samples}


def test_variants_are_found_whatever_happens_meanwhile(tmp_path: Path) -> None:  # DU-2 DU-5
    analyst = Geneticist(tmp_path, EXAMPLE)
    analyst.do("simulate.py", "data", "first", "second")
    run = analyst.start("-m", "mendflow", "run", "variants.yaml", "--output-dir", "results")
    end = time.monotonic() + PATIENCE_S
    while not any("aligned.sam" in names for _, _, names in os.walk(tmp_path / ".mendflow")):  # folders come and go
        assert run.poll() is None and time.monotonic() < end
        time.sleep(0.01)
    os.killpg(run.pid, signal.SIGKILL)
    run.communicate()

    analyst.mendflow("resume", "last", "--output-dir", "results")
    assert analyst.found() == analyst.truth("first", "second")
    told = analyst.mendflow("why", "last")
    assert "did more-memory" in told and "of them repaired" in told

    analyst.do("simulate.py", "data", "first", "second", "third")
    analyst.mendflow("run", "variants.yaml", "--output-dir", "results")
    assert analyst.found() == analyst.truth("first", "second", "third")
    ran = sorted(item["item"] for item in analyst.items() if item["state"] != "cached")
    assert ran == ["align[2]", "call[2]", "table"]
