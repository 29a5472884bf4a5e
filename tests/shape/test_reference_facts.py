"""Facts that the reference repeats from the code are those of the code."""

import inspect
from pathlib import Path

from mendflow.core.model import errors
from mendflow.core.model.errors import RequestError
from mendflow.formats.yaml import document

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"


def test_every_code_of_a_refusal_is_in_the_table_of_the_api() -> None:
    table = [line for line in (REFERENCE / "api.md").read_text().splitlines() if line.startswith("| ")]
    kinds = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, RequestError)]
    codes = {str(kind.code): str(kind.status) for kind in kinds}
    missing = {code for code in codes if not any(f"`{code}`" in row for row in table)}
    assert len(codes) > 8 and not missing
    assert any(row.startswith(f"| {RequestError.status} ") and f"`{RequestError.code}`" in row for row in table)


def test_the_bounds_of_a_flow_file_are_those_that_it_is_held_to() -> None:
    page = " ".join((REFERENCE / "flow-format.md").read_text().split())
    assert f"{document.NODES_MAX:,} values ({document.EXPANDED_MAX:,} with its aliases expanded)" in page


def test_the_serials_of_events_are_shown_as_they_are() -> None:
    page = (REFERENCE / "api.md").read_text()
    shown = [line.partition(": ")[2].strip(" '") for line in page.splitlines() if line.startswith("id: ")]
    shown += [
        line.rpartition("Last-Event-ID: ")[2].rstrip("'") for line in page.splitlines() if "Last-Event-ID: " in line
    ]
    assert len(shown) >= 2
    assert all(len(serial) == len("1794720458157") for serial in shown), "they begin at the server's start, in ms"
