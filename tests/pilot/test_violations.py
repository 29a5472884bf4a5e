"""A rule about a running job sees what the job reports and what its pilot measures, while it still matters."""

from pathlib import Path

import pytest

from tests.patience import PATIENCE_S
from tests.pilot.command_line import CommandLine

RULES = "rules: watched\nviolation:\n  job:\n    - {if: CONDITION, do: [{force-complete: }]}\n"
REPORTS = """\
      echo '{"loss": 1}' >> "$MENDFLOW_REPORT"
      sleep 0.5
      echo '{"loss": 9}' >> "$MENDFLOW_REPORT"
"""
HOGS = """\
      python3 -c "x = bytearray(b'x') * (100 << 20); import time; time.sleep(600)"
"""


@pytest.mark.full
@pytest.mark.parametrize(
    ("script", "condition"),
    [(REPORTS, "has(values.loss) && values.loss > 5"), (HOGS, "measures.memory_bytes > 80000000")],
    ids=["reported", "measured"],
)
def test_a_job_that_breaks_a_constraint_is_mended_while_it_runs(
    command_line: CommandLine, tmp_path: Path, script: str, condition: str
) -> None:  # EX-1
    flow = (
        f"name: watched\njobs:\n  job:\n    run: |\n{script}      sleep 600\n  last: {{after: job, run: echo last}}\n"
    )
    (tmp_path / "watched.yaml").write_text(flow)
    (tmp_path / "watched.rules.yaml").write_text(RULES.replace("CONDITION", condition))
    running = command_line.start("run", "watched.yaml")
    out, _ = running.communicate(timeout=PATIENCE_S)  # it would run for ten minutes
    assert running.returncode == 0 and "violation" in out, out
    (case,) = [each for each in command_line.json("cases") if each["flow"] == "watched"]
    assert case["status"] == "completed"
