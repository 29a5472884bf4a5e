"""What a text means as a value of each type: on the command line as in the forms of the web app, which is told the same
table by web/test/exact-values.test.ts."""

import json
from pathlib import Path
from typing import Any

import pytest

from mendflow.cli.inputs import typed_value
from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.flow import Input

ROWS: list[dict[str, Any]] = json.loads((Path(__file__).parent / "values_as_written.json").read_text())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['type']}:{row['text']}")
def test_a_text_is_what_the_table_says(row: dict[str, Any]) -> None:
    declared = Input(type=row["type"], inferred=row.get("inferred", False), default=1.5)
    if row["becomes"] is None:
        with pytest.raises(InvalidRequest):
            typed_value("it", row["text"], declared)
        return
    value = typed_value("it", row["text"], declared)
    assert repr(value) == repr(json.loads(row["becomes"]))
