"""Processes that nobody here wrote: each can be adapted, and what comes out is a process again."""

from pathlib import Path

import pytest

from mendflow.core.engine.plan import walk_activities
from mendflow.core.model.flow import Flow, Invoke
from mendflow.formats.bpel import load_bpel
from mendflow.formats.bpel.adapter import adapt
from tests.formats.bpel.adapter.bank import save
from tests.formats.bpel.test_conformance import processes


def invokes(flow: Flow) -> list[Invoke]:
    return [each for each in walk_activities(flow) if isinstance(each, Invoke)]


@pytest.mark.full
def test_every_conformance_process_can_be_adapted_and_read_again(tmp_path: Path) -> None:  # FM-9
    woven = 0
    for path in (found := processes()):
        before = load_bpel(path)
        after = load_bpel(save(adapt(path, tmp_path / path.parent.name / path.name)))
        woven += len(invokes(after))
        assert before.xml is not None and after.xml is not None and after.xml.sheets == before.xml.sheets
        begun = [each.label or each.name for each in invokes(after) if each.operation == "begin"]
        assert begun == [each.label or each.name for each in invokes(before)]
        assert {each.partner for each in invokes(after)} <= {"mendflowProxy"}
    assert woven >= 30 or not found, "the conformance processes call partners"
