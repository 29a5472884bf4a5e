"""Each rule of static analysis is broken alone, by a process that is refused with the rule's number and a line."""

from pathlib import Path

import pytest

from mendflow.core.model.errors import BadFlow
from mendflow.formats.bpel import load_bpel
from mendflow.formats.bpel.analysis import RULES
from tests.formats.bpel.analysis.broken import BROKEN, Broken
from tests.formats.bpel.documents import WSDL, put

BY_THE_READER = {4, 9, 13, 32}
ELSEWHERE = {26, 49, 60, 74, 75, 94, 95}
"""What holds by how a process is read or is a fault when it happens; there is no rule 49."""


def refused(folder: Path, broken: Broken) -> list[str]:
    wsdl = WSDL
    for old, new in broken.wsdl:
        assert old in wsdl
        wsdl = wsdl.replace(old, new)
    with pytest.raises(BadFlow) as error:
        load_bpel(put(folder, broken.text, orders_wsdl=wsdl))
    assert all(problem.line and problem.file for problem in error.value.problems)
    return [problem.message for problem in error.value.problems]


@pytest.mark.parametrize("broken", BROKEN, ids=lambda one: f"{one.number}")
def test_a_process_that_breaks_one_rule_is_refused_with_its_number(tmp_path: Path, broken: Broken) -> None:  # FM-6
    said = refused(tmp_path, broken)
    assert {one[:7] for one in said} == {f"SA{broken.number:05}"}, said


def test_every_rule_is_broken_by_some_process() -> None:
    checked = {rule.number for rule in RULES} - {0} | BY_THE_READER
    assert {broken.number for broken in BROKEN} == checked
    assert checked | ELSEWHERE == set(range(1, 96))
    assert not checked & ELSEWHERE


def test_every_rule_has_a_sentence() -> None:
    assert all(rule.sentence.endswith(".") for rule in RULES)
