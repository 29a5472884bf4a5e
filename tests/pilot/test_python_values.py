"""Values of Python between jobs of a real pilot, by their kind; what is large goes as files, through its cache."""

import pytest

from mendflow.core.model.faults import Category
from tests.pilot.conftest import Server

pytestmark = pytest.mark.asyncio(loop_scope="module")

SOURCE = """
import datetime, enum, pathlib
from dataclasses import dataclass
from zoneinfo import ZoneInfo
import numpy as np

class Colour(enum.Enum):
    RED = 1

@dataclass
class Fit:
    when: datetime.datetime
    weights: np.ndarray
    colour: Colour = Colour.RED

def make(n):
    when = datetime.datetime(2026, 10, 25, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"), fold=1)
    return Fit(when, np.arange(n, dtype="f8"))

def use(fit):
    assert type(fit) is Fit and fit.when.fold == 1 and fit.colour is Colour.RED
    fit.weights += 1
    return {"sum": float(fit.weights.sum()), "zone": fit.when.tzinfo.key, "type": type(fit.weights).__name__}

def leave():
    pathlib.Path("sub").mkdir()
    pathlib.Path("sub/table.csv").write_text("a,b")
    return {"table": pathlib.Path("sub/table.csv"), "same": [pathlib.Path("sub/table.csv").resolve()]}

def read(given):
    path = given["table"]
    path.write_text(path.read_text() + "c")
    return [path.name, path.read_text(), given["same"][0].read_text()]

def many(n):
    return [make(2000 + i) for i in range(n)]

def last(fits: list[Fit]):
    return [len(fits), fits[-1].weights.shape[0]]

def typed(day: datetime.date, fit: Fit):
    return day.isoformat()

def objects():
    return np.array([object()])
"""


@pytest.fixture
def server(staffed: Server) -> Server:
    return staffed


async def test_records_with_arrays_go_from_job_to_job(server: Server) -> None:  # DU-8
    made = await server.outcome(await server.call(SOURCE, "make", 1_000_000))
    assert made.ok, made.fault
    assert [(ref.name, ref.bytes) for ref in made.contents] == [("array.npy", 8_000_128)]
    assert made.outputs["weights"]["$file"] == made.contents[0].sha256 and not made.undeclared_reads
    for _ in range(2):  # what the first one wrote into its array is not seen by the second
        used = await server.outcome(await server.call(SOURCE, "use", made.outputs))
        assert used.outputs == {"sum": 500000500000.0, "zone": "Europe/Berlin", "type": "ndarray"}, used.fault
        assert not used.undeclared_reads


async def test_a_path_that_a_job_returns_is_a_file_that_the_next_one_has(server: Server) -> None:  # DU-8
    left = await server.outcome(await server.call(SOURCE, "leave"))
    assert left.ok and len(left.contents) == 1, left.fault
    read = await server.outcome(await server.call(SOURCE, "read", left.outputs))
    assert read.outputs == ["table.csv", "a,bc", "a,b"], read.fault


async def test_arrays_inside_a_value_that_is_stored_as_a_file_are_found(server: Server) -> None:  # DU-8
    made = await server.outcome(await server.call(SOURCE, "many", 300))
    assert made.ok and "$spilled" in made.outputs and len(made.contents) == 300, made.fault
    assert (await server.outcome(await server.call(SOURCE, "last", made.outputs))).outputs == [300, 2299]


async def test_an_argument_that_cannot_be_what_is_wanted_is_named(server: Server) -> None:  # DU-8
    fit = {"when": "2026-01-01", "weights": [1, 2]}
    assert (await server.outcome(await server.call(SOURCE, "typed", "2026-02-03", fit))).outputs == "2026-02-03"
    fault = (await server.outcome(await server.call(SOURCE, "typed", "2026-02-03", {**fit, "wights": 1}))).fault
    assert fault is not None and (fault.name, fault.category) == ("badArgument", Category.INPUT)
    assert "the argument `fit` of given.typed cannot be given: it has the field `wights`" in fault.message
    fault = (await server.outcome(await server.call(SOURCE, "objects"))).fault
    assert fault is not None and "given.objects returned a ndarray" in fault.message and "dtype object" in fault.message


@pytest.mark.full
async def test_a_content_that_is_not_what_its_job_says_is_refused(server: Server) -> None:  # DU-8
    source = SOURCE + (
        "\nimport hashlib, mendflow.pilot.worker.value_files as files\n"
        "class Forged:\n  def hexdigest(self): return 'ab' * 32\n  def update(self, part): pass\n"
        "def forge():\n  files.hashlib = type('h', (), {'sha256': Forged})\n  return np.zeros(10_000)\n"
    )
    fault = (await server.outcome(await server.call(source, "forge"))).fault
    assert fault is not None and fault.category is Category.OUTPUT, fault
