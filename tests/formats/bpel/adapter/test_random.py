"""Whatever process can be read can be adapted, and every invoke in it calls the proxy then."""

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from mendflow.formats.bpel import load_bpel
from mendflow.formats.bpel.adapter import adapt
from tests.examples import examples
from tests.formats.bpel.adapter.bank import save
from tests.formats.bpel.adapter.test_conformance import invokes
from tests.formats.bpel.documents import put
from tests.formats.bpel.writing.test_rounds import STEPS, whole


@given(steps=st.lists(STEPS, min_size=1, max_size=3))
@settings(max_examples=examples(60), deadline=None)
def test_random_processes_can_be_adapted(steps: list[str]) -> None:  # FM-9
    with tempfile.TemporaryDirectory() as folder:
        path = put(Path(folder, "first"), whole("".join(steps)))
        before = invokes(load_bpel(path))
        adapted = adapt(path, Path(folder, "second", "adapted.bpel"))
        after = invokes(load_bpel(save(adapted)))
        begun = [each for each in after if each.operation == "begin"]
        assert len(begun) == len(before) == len(adapted.woven.calls)
        assert {each.operation for each in after} <= {"open", "begin", "ask", "result"}
