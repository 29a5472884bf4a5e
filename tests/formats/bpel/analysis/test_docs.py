"""The page on BPEL lists the rules that are checked, each in its own words."""

import re
from pathlib import Path

from mendflow.formats.bpel.analysis import RULES
from tests.formats.bpel.analysis.test_rules import BY_THE_READER, ELSEWHERE

PAGE = Path(__file__).parents[4] / "docs" / "reference" / "bpel.md"
ROW = re.compile(r"^\| SA(\d{5}) \| (.*) \|$", re.MULTILINE)


def test_every_rule_has_a_row_with_its_sentence() -> None:
    rows = {int(number): text for number, text in ROW.findall(PAGE.read_text())}
    assert rows.keys() == {rule.number for rule in RULES} - {0} | BY_THE_READER | ELSEWHERE - {49}
    plain = {number: text.replace("`", "") for number, text in rows.items()}
    missing = [rule for rule in RULES if rule.number and rule.sentence.replace("`", "") not in plain[rule.number]]
    assert not missing, [f"SA{rule.number:05}: {rule.sentence}" for rule in missing]
