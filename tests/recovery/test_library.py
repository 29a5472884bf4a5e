"""The library of compensations: what undoes a task that its flow says nothing about."""

from pathlib import Path

import pytest

from mendflow.core.model.errors import NotFound
from mendflow.formats.yaml import read_flow
from tests.recovery.conftest import Site

BOOKING = """
name: booking
inputs: {book: {type: string}}
steps:
  - {name: reserve, run: 'echo reserved >> ${{ inputs.book }}; echo "seat=12" >> "$MENDFLOW_OUTPUT"'}
  - {name: order, run: 'echo ordered >> ${{ inputs.book }}', compensation: 'echo "not ordered" >> ${{ inputs.book }}'}
  - {name: pay, run: exit 1}
"""


def given_back(book: Path) -> str:
    return f"name: give-back\ninputs: {{seat: 0}}\nsteps:\n  - run: echo seat ${{{{ inputs.seat }}}} free >> {book}\n"


def test_a_task_is_undone_by_the_flow_that_the_library_has_for_it(site: Site, tmp_path: Path) -> None:
    # AD-1 AD-5
    book = tmp_path / "book"
    site.client.deploy(read_flow(given_back(book), tmp_path / "give-back.yaml"))
    site.client.deploy(read_flow(BOOKING, tmp_path / "booking.yaml"))
    assert [(each.task, each.flow) for each in site.client.register_compensation("reserve", "give-back")] == [
        ("reserve", "give-back")
    ]
    case = site.client.start("booking", {"book": str(book)}).id
    assert site.ended(case) == "failed"
    assert site.did(case) == ["give-up"]
    assert book.read_text().splitlines() == ["reserved", "ordered", "not ordered", "seat 12 free"]
    assert site.client.register_compensation("reserve") == []


def test_only_a_flow_that_is_deployed_can_undo_a_task(site: Site) -> None:
    with pytest.raises(NotFound):
        site.client.register_compensation("reserve", "nowhere")
    with pytest.raises(NotFound):
        site.client.register_compensation("nothing")
