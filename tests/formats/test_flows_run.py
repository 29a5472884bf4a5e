"""What the formats make is what the engine runs: whole flows, from their text to their outputs."""  # FM-1, FM-6

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from mendflow.core.data.path_arguments import paths_of_argument
from mendflow.core.engine import Case, decide, evolve
from mendflow.core.engine.messages import (
    Command,
    ContinueLater,
    EndCase,
    FinishItem,
    Order,
    Proceed,
    StageFiles,
    StartCalledCase,
    StartCase,
    SubmitJob,
    staging_outcome,
)
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.flow import Flow
from mendflow.core.model.ids import CaseId
from mendflow.core.model.jobs import JobSpec, Outcome
from mendflow.core.model.values import FileRef, Value
from mendflow.formats import load
from tests.formats.conftest import Reader

EXAMPLES = Path(__file__).parents[2] / "examples"
Work = Callable[[JobSpec], Outcome]


class World:
    """Runs a case at once: each order is answered as soon as it is given."""

    def __init__(self, flow: Flow, work: Work, **inputs: Value) -> None:
        self.case = Case.blank()
        self.ran: list[JobSpec] = []
        self.end: EndCase | None = None
        self._work = work
        self._take(StartCase(case=CaseId("c"), flow=flow, inputs=inputs))

    def _take(self, first: Command) -> None:
        commands = [first]
        while commands:
            for event in decide(self.case, commands.pop(0), 1000):
                for order in evolve(self.case, event):
                    commands += self._answer(order)

    def _answer(self, order: Order) -> list[Command]:
        match order:
            case SubmitJob(serial=serial, spec=spec):
                self.ran.append(spec)
                return [FinishItem(serial=serial, outcome=self._work(spec))]
            case StageFiles(serial=serial, files=files):
                kept = {path: FileRef(sha256=digest_of(source), bytes=1, name=path) for path, source in files.items()}
                return [FinishItem(serial=serial, outcome=staging_outcome(kept))]
            case StartCalledCase(serial=serial, flow=flow, inputs=inputs):
                assert flow is not None
                called = World(flow, self._work, **inputs)
                assert called.end is not None
                return [FinishItem(serial=serial, outcome=Outcome(outputs=called.end.outputs))]
            case ContinueLater(serial=serial):
                return [Proceed(serial=serial)]
            case EndCase():
                self.end = order
        return []

    @property
    def items(self) -> list[str]:
        return [spec.item for spec in self.ran]

    def outputs(self) -> dict[str, Value]:
        assert self.end is not None
        assert self.end.status == "completed", self.end.fault
        return self.end.outputs


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def well(spec: JobSpec) -> Outcome:
    """A job that leaves its command, and every file that it promised."""
    files = {
        name: FileRef(sha256=digest_of(f"{spec.item}/{name}"), bytes=1, name=path) for name, path in spec.files.items()
    }
    return Outcome(outputs={"did": spec.command}, files=files)


def failing(*items: str) -> Work:
    fault = Fault(name="exitCode", category=Category.JOB, message="it ended with exit code 3", exit_code=3)
    return lambda spec: Outcome(fault=fault) if spec.item in items else well(spec)


def test_values_and_files_pass_between_jobs(read: Reader, tmp_path: Path) -> None:
    (tmp_path / "given.csv").write_text("1")
    world = World(
        read("""
jobs:
  make: {run: one, files: {table: t.csv}}
  use: {run: "two ${{ jobs.make.outputs.did }}", inputs: {t.csv: "${{ jobs.make.files.table }}", g.csv: given.csv}}
outputs: {did: "${{ jobs.use.outputs.did }}"}
"""),
        well,
    )
    assert world.outputs() == {"did": "two one"}
    assert {path: ref.sha256 for path, ref in world.ran[1].inputs.items()} == {
        "t.csv": digest_of("make/table"),
        "g.csv": digest_of("given.csv"),
    }


def test_a_file_that_a_function_is_given_comes_as_a_path_as_in_python(read: Reader, tmp_path: Path) -> None:  # DU-3
    (tmp_path / "tools.py").write_text("def count(data, n): ...\n")
    text = """
jobs:
  make: {run: echo > a.txt, files: {out: a.txt}}
  named: {python: "tools.py:count", with: {data: "${{ jobs.make.files.out }}", n: 2}}
  placed:
    python: "tools.py:count"
    with: ["${{ jobs.make.files.out }}", 2]
    inputs: {data/x: "${{ jobs.make.files.out }}"}
"""
    made = FileRef(sha256="a" * 64, bytes=1, name="a.txt")
    world = World(read(text), lambda spec: Outcome(files={"out": made}) if spec.item == "make" else Outcome())
    specs = {str(spec.item): spec for spec in world.ran}
    assert specs["named"].inputs == {"data/a.txt": made}
    assert paths_of_argument(specs["named"].kwargs["data"]) == "data/a.txt" and specs["named"].kwargs["n"] == 2
    assert specs["placed"].inputs == {"data/x": made, "with/0/a.txt": made}
    assert paths_of_argument(specs["placed"].args[0]) == "with/0/a.txt"


def test_a_loop_is_seen_under_its_name_and_collects(read: Reader) -> None:
    world = World(
        read("""
inputs: {names: [a, b, c]}
jobs:
  count: {for-each: "${{ inputs.names }}", run: "wc ${{ item }} ${{ index }}"}
  keep:
    for-each: {items: [x, y], collect: "${{ jobs.keep.files.f }}", in: sequence}
    run: touch ${{ item }}
    files: {f: "${{ item }}"}
  tell: "echo ${{ jobs.count.outputs.map(c, c.did).join('+') }}"
outputs:
  all: ${{ jobs.count.outputs }}
  files: ${{ jobs.keep.outputs.map(f, f.name) }}
  told: ${{ jobs.tell.outputs.did }}
"""),
        well,
        names=["p", "q"],
    )
    assert set(world.items) == {"count[0]", "count[1]", "keep[0]", "keep[1]", "tell"}
    assert world.outputs() == {
        "all": [{"did": "wc p 0"}, {"did": "wc q 1"}],
        "files": ["x", "y"],
        "told": "echo wc p 0+wc q 1",
    }


def test_a_failure_skips_what_needs_it_and_nothing_else(read: Reader) -> None:
    flow = read("""
jobs:
  bad: one
  needing: {run: two, needs: bad}
  using: "three ${{ jobs.bad.outputs.did }}"
  free: four
  cleaning: {run: five, after: [bad, needing]}
  complaining: {run: six, after: bad, if: "!has(jobs.bad)"}
  praising: {run: seven, after: bad, if: has(jobs.bad)}
""")
    world = World(flow, failing("bad"))
    assert set(world.items) == {"bad", "free", "cleaning", "complaining"}
    assert world.end is not None
    assert world.end.status == "failed"
    assert set(World(flow, well).items) == {"bad", "needing", "using", "free", "cleaning", "praising"}


def test_conditions_and_loops_follow_the_data(read: Reader) -> None:
    world = World(
        read("""
variables: {n: 0, seen: []}
steps:
  - while: n < 3
    do: [{set: {n: "${{ n + 1 }}"}}, {set: {seen: "${{ seen + [n] }}"}}]
  - until: n == 0
    do: {set: {n: "${{ n - 1 }}"}}
  - choose:
      - {when: n > 0, do: never}
      - {when: size(seen) == 3, do: {name: taken, run: yes}}
      - otherwise: neither
  - choose-many:
      - {when: true, do: first}
      - {when: n == 0, do: second}
outputs: {seen: "${{ seen }}", taken: "${{ jobs.taken.outputs.did }}"}
"""),
        well,
    )
    assert world.outputs() == {"seen": [1, 2, 3], "taken": "yes"}
    assert world.items[0] == "taken"
    assert set(world.items[1:]) == {"step-4.1", "step-4.2"}


def test_a_fault_is_caught_in_its_scope_and_what_was_done_is_undone(read: Reader) -> None:
    world = World(
        read("""
variables: {said: nothing}
steps:
  - name: trip
    scope:
      - {name: hotel, scope: book hotel, undo: cancel hotel}
      - {name: flight, run: book flight}
    catch:
      - as: f
        do: [{compensate: all}, {set: {said: "${{ f.name }} ${{ f.exit_code }}"}}]
outputs: {said: "${{ said }}"}
"""),
        failing("flight"),
    )
    assert world.outputs() == {"said": "exitCode 3"}
    assert [spec.command for spec in world.ran] == ["book hotel", "book flight", "cancel hotel"]


def test_a_called_flow_gives_its_outputs() -> None:
    def weigh(spec: JobSpec) -> Outcome:
        return Outcome(outputs={"kilos": 3 * (int(spec.item.partition("[")[2].rstrip("]")) + 1)})

    assert World(load(EXAMPLES / "survey.yaml"), weigh).outputs() == {"harvest": 90}


def test_a_python_flow_runs_as_the_functions_would() -> None:
    words: dict[str, Callable[..., Value]] = {
        "split": str.split,
        "count": len,
        "add": lambda counts: {"words": sum(counts)},
    }

    def call(spec: JobSpec) -> Outcome:
        assert spec.function is not None
        return Outcome(outputs=words[spec.function.name](*spec.args, **spec.kwargs))

    assert World(load(EXAMPLES / "pipeline.py"), call, text="a bb ccc").outputs() == {"result": {"words": 6}}


@pytest.mark.parametrize("name", ["hello.yaml", "night.yaml"])
def test_every_example_of_shell_jobs_completes(name: str) -> None:
    def measured(spec: JobSpec) -> Outcome:
        done = well(spec)
        return Outcome(outputs={"offset": 7, "brightness": 5, "brightest": 9}, files=done.files)

    assert World(load(EXAMPLES / name), measured).outputs() is not None
