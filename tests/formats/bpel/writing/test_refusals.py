"""What BPEL cannot say is refused by name."""

from pathlib import Path

import pytest

from mendflow.core.model.errors import BadFlow
from mendflow.core.model.flow import Empty, Flow, ForEach, JobActivity, Sequence
from mendflow.core.model.ids import FlowName
from mendflow.formats.bpel.writing import write_bpel
from tests.formats.bpel.documents import flow, sequence


def test_everything_that_cannot_be_said_is_told_at_once(tmp_path: Path) -> None:
    process = flow(tmp_path, sequence())
    assert process.xml is not None
    body = Sequence(
        name="s", body=(ForEach(name="each", items="x", body=Empty(name="e", join="all")), JobActivity(name="j"))
    )
    with pytest.raises(BadFlow) as refused:
        write_bpel(Flow(name=FlowName("f"), body=body, xml=process.xml))
    assert [each.message.partition(";")[0] for each in refused.value.problems] == [
        "f: a process is a scope as a whole",
        "j: BPEL has no word for a job",
        "each: BPEL counts from a number to a number, and has no loop over a list",
        "e: its links are joined by `all`",
    ]
