"""Flows that are run from scripts and notebooks, with real servers, pilots and kernels."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from mendflow import Runner
from mendflow.core.model.errors import InvalidRequest
from mendflow.scripts.notebook_cells import module_text
from mendflow.scripts.runner import demand_runnable
from tests.patience import PATIENCE_S
from tests.scripts.fits import count, handing_on, single

HERE = Path(__file__).parent


def run_script(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    shutil.copy(HERE / "fits.py", folder / "fits.py")
    environment = {name: each for name, each in os.environ.items() if not name.startswith("MENDFLOW_")}
    command = [sys.executable, "fits.py", *words]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=4 * PATIENCE_S, check=False
    )


@pytest.mark.full
def test_a_script_runs_flows_and_has_their_results_as_values(tmp_path: Path) -> None:  # DU-8
    done = run_script(tmp_path, "fail")
    out = done.stdout
    assert "plot: 49999.5 2026-03-01" in out, done.stderr
    assert "single: Fit(slope=1.5, day=datetime.date(2026, 1, 1), residuals=array([-0.5,  0.5]))" in out
    assert "is still running after 0.1 s; it goes on" in out and "why: case dozing-" in out
    assert "cancelled: cancelled" in out and "elsewhere: 0.0" in out and "the flow dozing was cancelled" in out
    assert "fit: 1 done" in done.stderr  # progress
    assert done.returncode == 1
    told = done.stderr[done.stderr.index("Traceback") :]
    assert "mendflow.FlowFailed: the flow failing has failed" in told
    assert "job fail: ValueError: the slope is 1.5" in told and "    | about to fail" in told
    assert told.count("/src/mendflow/") <= 1, "the stack of mendflow itself is none of a user's business"


NEEDY = """
from datetime import datetime
from mendflow import flow, job


@job(limits=["gate"], secrets=["api-token"])
def ask(since: datetime) -> str:
    return str(since)


@job
def tell(since: datetime) -> str:
    return str(since)


@flow
def needy(since: datetime):
    return ask(since)


@flow
def dated(since: datetime):
    return tell(since)


if __name__ == "__main__":
    for meant, given in ((needy, datetime(2026, 3, 1)), (dated, "yesterday")):
        try:
            meant.run(since=given)
        except Exception as error:
            print(type(error).__name__, error)
    print(dated.run(since="2026-03-01"))
"""


@pytest.mark.full
def test_a_script_is_told_of_limits_secrets_and_inputs_before_a_case_starts(tmp_path: Path) -> None:  # DU-8
    (tmp_path / "needy.py").write_text(NEEDY, encoding="utf-8")
    environment = {name: each for name, each in os.environ.items() if not name.startswith("MENDFLOW_")}
    done = subprocess.run(
        [sys.executable, "needy.py"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=4 * PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    first, second, third = done.stdout.splitlines()
    assert "job ask uses the secret api-token, which is not there" in first
    assert "job ask uses the limit gate, which nobody has set here: mendflow limits set gate COUNT" in first
    assert (
        "input since must be a date and a time such as 2026-03-01T08:30:00+01:00, or a date, not 'yesterday'" in second
    )
    assert third == "2026-03-01 00:00:00"


CELLS = [
    "import numpy as np\nfrom dataclasses import dataclass\nfrom mendflow import flow, job",
    "FACTOR = 2\nunused = open('/nowhere') if False else 1",
    "@dataclass\nclass Scaled:\n    values: np.ndarray\n    factor: int",
    "@job\ndef scale(xs: np.ndarray) -> Scaled:\n    return Scaled(xs * FACTOR, FACTOR)",
    "@job\ndef total(scaled):\n    return float(scaled.values.sum())",
    "@flow\ndef work(xs):\n    scaled = scale(xs)\n    return {'scaled': scaled, 'total': total(scaled)}",
    "result = work.run(xs=np.ones(50_000))\nprint(type(result['scaled']) is Scaled, result['total'])",
    "FACTOR = 3",
    "handle = work.submit(xs=np.ones(10))\nprint((await handle)['total'])",
    "@job\ndef fail():\n    print('before the end')\n    raise ValueError('on purpose')\n"
    "@flow\ndef failing():\n    return fail()",
    "failing.run()",
]


@pytest.mark.full
def test_a_notebook_defines_and_runs_flows_in_its_cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [each for each in os.environ if each.startswith("MENDFLOW_")]:  # DU-8
        monkeypatch.delenv(name)
    kernels = tmp_path / "jupyter" / "kernels" / "python3"
    kernels.mkdir(parents=True)
    argv = f'["{sys.executable}", "-m", "ipykernel_launcher", "-f", "{{connection_file}}"]'
    (kernels / "kernel.json").write_text(f'{{"argv": {argv}, "display_name": "Python", "language": "python"}}')
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "jupyter"))
    cells: list[dict[str, object]] = [
        {
            "cell_type": "code",
            "source": each,
            "metadata": {},
            "outputs": [],
            "execution_count": None,
            "id": f"c{number}",
        }
        for number, each in enumerate(CELLS)
    ]
    notebook = nbformat.from_dict({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells})
    client = NotebookClient(
        notebook,
        timeout=int(4 * PATIENCE_S),
        kernel_name="python3",
        allow_errors=True,
        resources={"metadata": {"path": str(tmp_path)}},
    )
    client.execute()
    outputs = [cell.outputs for cell in notebook.cells]
    said = ["".join(each.get("text", "") for each in cell) for cell in outputs]
    assert "True 100000.0" in said[6], outputs[6]
    (shown,) = [each for each in outputs[6] if each.output_type == "display_data"]
    assert "completed" in shown.data["text/html"] and "scale: 1 done" in shown.data["text/plain"]
    assert "30.0" in said[8], outputs[8]  # a cell that was run again counts
    (error,) = [each for each in outputs[10] if each.output_type == "error"]
    told = "\n".join(error.traceback)
    assert "job fail: ValueError: on purpose" in told and "| before the end" in told
    assert "src/mendflow" not in told, "the stack of mendflow itself is none of a user's business"


def test_the_file_of_a_notebook_has_what_the_flow_needs_and_nothing_else() -> None:
    cells = [
        "import os, numpy as np",
        "from __future__ import annotations\nx = 1",
        "y: int = x + 1\ndel_me = os.remove('a')",
        "def helper(): return y",
        "def helper(): return np.zeros(y)",
        "%not python",
        "@job\ndef work(a: 'Late'): return helper()",
        "class Late: pass",
        "print(work())\nresult = main.run()",
        "@flow\ndef main(): return work(1)",
    ]
    assert module_text(cells, "main", {"y": 2}).replace("\n\n\n", "\n").splitlines() == [
        "from __future__ import annotations",
        "import os, numpy as np",
        "x = 1",
        "y: int = x + 1",
        "def helper():",
        "    return np.zeros(y)",
        "@job",
        "def work(a: 'Late'):",
        "    return helper()",
        "class Late:",
        "    pass",
        "@flow",
        "def main():",
        "    return work(1)",
    ]
    with pytest.raises(InvalidRequest, match="run its cell again"):
        module_text(cells, "other")


MAIN = "@flow\ndef main(): return work(T, P)"


@pytest.mark.parametrize(
    ("cells", "kept"),
    [
        (["T = 5", "T += 1"], "T = 5; T += 1"),
        (["T = 5", "T += 1", "T = 7"], "T = 7"),
        (["T = 1", "P = [T]", "T = 2"], "T = 1; P = [T]; T = 2"),
        (["P = {}", "P['a'] = 3", "P.update(b=4)", "del P['a']"], "P = {}; P['a'] = 3; P.update(b=4); del P['a']"),
        (["P = []", "for n in range(3): P.append(n)"], "P = []; for n in range(3):;     P.append(n)"),
        (["P = {}", "Q = P", "Q['a'] = 1"], "P = {}; Q = P; Q['a'] = 1"),
        (["P = [3, 4]", "last = P.pop()", "print(P, len(P))"], "P = [3, 4]; last = P.pop()"),
        (
            ["try:\n    import P\nexcept ImportError:\n    P = None"],
            "try:;     import P; except ImportError:;     P = None",
        ),
        (["T = 5", "if T > 3: T = 3"], "T = 5; if T > 3:;     T = 3"),
        (["import P", "P.remove('a')", "plot(P)", "P.level = 3"], "import P; P.level = 3"),
        (["T = 5", "plot(T)", "z = [T for T in 'ab']"], "T = 5"),
        (["def g(): return T", "T = 1", "P = g()", "T = 2"], "def g():;     return T; T = 1; P = g(); T = 2"),
    ],
)
def test_the_file_of_a_notebook_has_all_that_changes_what_the_flow_needs(cells: list[str], kept: str) -> None:
    lines = module_text([*cells, MAIN], "main").replace("\n\n\n", "\n").splitlines()
    assert "; ".join(lines[:-3]) == kept  # DU-8


@pytest.mark.parametrize(
    "cells",
    [
        ["P = []", "random.shuffle(P)"],
        ["P = []", "Q = P", "fill(Q)"],
        ["P = {}", "def fill(): P['a'] = 1", "def both(): fill()", "both()"],
        ["T = 1", "def more():\n    global T\n    T += 1", "more()"],
    ],
)
def test_what_may_have_changed_without_being_seen_is_refused(cells: list[str]) -> None:
    with pytest.raises(InvalidRequest, match=r"may have changed `[TP]`.* assign it anew"):  # DU-8
        module_text([*cells, MAIN], "main")
    assert "P = 1" in module_text([*cells, "T = P = 1", MAIN], "main")


def test_a_flow_is_not_run_where_that_would_never_end(monkeypatch: pytest.MonkeyPatch) -> None:
    assert demand_runnable(single, ([1],), {}) == {"xs": [1]}
    with pytest.raises(TypeError, match="xs"):
        demand_runnable(single, (), {})
    with pytest.raises(InvalidRequest, match="is no flow"):
        demand_runnable(count, (), {})
    monkeypatch.setenv("MENDFLOW_JOB", "a/1")
    with pytest.raises(InvalidRequest, match='put it under `if __name__ == "__main__":`'):
        demand_runnable(single, ([1],), {})


def test_a_large_array_goes_from_job_to_job_without_a_copy(tmp_path: Path) -> None:  # DU-8
    with Runner(folder=tmp_path / "data", jobs=2, progress=False, cache="none") as runner:
        found = runner.run(handing_on, 2_500_000)
    assert found["sum"] == 1_250_000.0
    path, links = found["read"]
    assert "/cache.stored/" in path and links >= 2, "it was read where the server has it"
    large = {each for each in (tmp_path / "data").rglob("*") if each.is_file() and each.stat().st_size > 20_000_000}
    assert [each.parent.parent.name for each in large] == ["files"], "one copy, and no link is left"
