"""The usual tasks, in YAML and in Python: both give the same, and in no more lines than elsewhere."""  # DU-3, DU-7

import ast
from pathlib import Path

import pytest

from mendflow.core.engine.messages import Command, FinishItem, OfferTask, Order
from mendflow.core.model.flow import Flow
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.values import Value, file_of
from mendflow.formats import load
from mendflow.formats.check import check
from tests.cli.conftest import Shell
from tests.formats.folder_pilot import KEPT, FolderPilot, stored
from tests.formats.test_flows_run import World

TASKS = Path(__file__).parents[2] / "examples" / "tasks"
PEERS = Path(__file__).parents[2] / "bench" / "peers" / "tasks"
SHORTEST = {
    "samples.yaml": "samples.smk",
    "samples.py": "samples.smk",
    "sweep.yaml": "sweep.py",
    "sweep.py": "sweep.py",
    "retries.yaml": "retries.py",
    "retries.py": "retries.py",
    "approval.yaml": "approval.py",
    "approval.py": "approval.py",
    "fan-out.yaml": "fan_out.py",
    "fan_out.py": "fan_out.py",
    "arrival.yaml": "arrival.py",
    "arrival.py": "arrival.py",
}
"""Each task, and the shortest way that we know to do it in Snakemake or Prefect."""

SMALL = {"data.csv": "a,b\n1,2\n3,4\n", "empty.csv": "nothing\n"}


class WorldWithPeople(World):
    """A case whose user tasks are done as soon as they are offered."""

    def _answer(self, order: Order) -> list[Command]:
        if isinstance(order, OfferTask):
            self.asked = (order.title, order.role, order.deadline - 1000)
            return [FinishItem(serial=order.serial, outcome=Outcome(outputs={}))]
        return super()._answer(order)


def run(name: str, folder: Path, **inputs: Value) -> WorldWithPeople:
    flow: Flow = load(TASKS / name)
    return WorldWithPeople(flow, FolderPilot(TASKS, folder), **inputs)


def given(folder: Path, name: str) -> Value:
    (folder / name).write_text(SMALL[name])
    return stored(folder / name, name).as_value()


BOTH = pytest.mark.parametrize("ending", ["yaml", "py"])


def test_every_task_stands_in_both_languages() -> None:
    assert sorted(each.name for each in TASKS.iterdir() if each.suffix) == sorted(SHORTEST)
    assert check([TASKS / name for name in SHORTEST]) == []


def lines_of(file: Path) -> int:
    """Without comments, docstrings, empty lines, and what only starts it."""
    text = file.read_text().partition("if __name__")[0]
    docstring = ast.get_docstring(ast.parse(text), clean=False) if file.suffix == ".py" else None
    text = text.replace(f'"""{docstring}"""', "")
    return sum(1 for line in text.splitlines() if line.strip() and not line.startswith("#"))


@pytest.mark.parametrize(("name", "peer"), SHORTEST.items())
def test_a_task_takes_no_more_lines_than_elsewhere(name: str, peer: str) -> None:
    assert 0 < lines_of(TASKS / name) <= lines_of(PEERS / peer)


@BOTH
def test_twenty_samples_are_merged_in_their_order(ending: str, tmp_path: Path) -> None:
    (result,) = run(f"samples.{ending}", tmp_path).outputs().values()
    merged = file_of(result)
    assert merged is not None and merged.name == "merged.txt"
    assert KEPT[merged.sha256].read_text().split() == [str(number) for number in range(1, 21)]


@BOTH
def test_a_sweep_takes_all_combinations(ending: str, tmp_path: Path) -> None:
    world = run(f"sweep.{ending}", tmp_path)
    assert list(world.outputs().values()) == [81]
    assert sum(item.startswith("simulate[") for item in world.items) == 100


@BOTH
def test_a_busy_server_is_tried_again(ending: str, tmp_path: Path) -> None:
    world = run(f"retries.{ending}", tmp_path)
    assert world.outputs() == {}
    assert len(list(tmp_path.iterdir())) == 3, "it was tried three times"


@BOTH
@pytest.mark.parametrize("quality", [7, 3])
def test_what_is_good_is_published_by_a_person_and_the_rest_is_discarded(
    ending: str, quality: int, tmp_path: Path
) -> None:
    world = run(f"approval.{ending}", tmp_path, quality=quality)
    assert world.outputs() == {}
    assert world.items[-1] == ("publish" if quality > 5 else "discard")
    if quality > 5:
        assert world.asked == ("Publish?", "editor", 7_200_000)


@BOTH
def test_one_in_ten_may_fail(ending: str, tmp_path: Path) -> None:
    world = run("fan-out.yaml" if ending == "yaml" else "fan_out.py", tmp_path)
    assert list(world.outputs().values()) == [sum(n**2 for n in range(1, 21)) - 7**2]


@BOTH
@pytest.mark.parametrize("name", SMALL)
def test_a_file_that_arrives_is_counted_or_its_case_fails(ending: str, name: str, tmp_path: Path) -> None:
    world = run(f"arrival.{ending}", tmp_path, file=given(tmp_path, name))
    assert world.end is not None
    if name == "data.csv":
        assert world.outputs() == {"rows": 3} and len(world.ran) == 1
    else:
        assert world.end.status == "failed"


@pytest.mark.full
@pytest.mark.parametrize("name", [each for each in SHORTEST if not each.startswith("arrival")])
def test_a_task_runs_as_its_reader_runs_it(name: str, tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    for each in TASKS.iterdir():
        if each.is_file():
            shell.write(each.name, each.read_text())
    words = ["--input", "quality=3"] if name.startswith("approval") else []
    assert " completed in " in shell.ok("run", name, "--quiet", *words)
