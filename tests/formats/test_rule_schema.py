"""The schema of rule files that editors use: made of the parser's tables, and true of the rules that we ship."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from mendflow.core.model.repair import ExceptionType
from mendflow.formats.schema import SchemaKind, rules_schema, schema_text

ROOT = Path(__file__).parents[2]
SHIPPED = [ROOT / "src" / "mendflow" / "defaults" / "rules.yaml", *sorted((ROOT / "examples").rglob("*rules*.yaml"))]


@pytest.fixture(scope="module")
def validator() -> Any:
    schema = json.loads(schema_text(SchemaKind.RULES))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def test_the_schema_of_rule_files_knows_every_type() -> None:
    assert {str(each) for each in ExceptionType} <= set(rules_schema()["properties"])


@pytest.mark.parametrize("path", SHIPPED, ids=[f"{path.parent.name}-{path.name}" for path in SHIPPED])
def test_it_accepts_the_rules_that_we_ship(validator: Any, path: Path) -> None:
    validator.validate(yaml.safe_load(path.read_text()))


@pytest.mark.parametrize(
    "text",
    [
        "{abort: {align: [{if: fault.category == 'memory', do: [{re-submit: , memory: 2 GB}]}]}}",
        "{case-pre: [{if: 'true', do: hold, except: [{if: case.age_ms > 3}]}], exlets: {hold: [{suspend: case}]}}",
        "{abort: {'*': {root: 1, rules: [{id: 1, if: 'true', then: 2}, {id: 2, if: 'false', do: x}]}}}",
        "{rules: night, exlets: {one: {steps: [{compensate: [a, b], write: all}]}}}",
    ],
)
def test_it_accepts_sound_rules(validator: Any, text: str) -> None:
    validator.validate(yaml.safe_load(text))


@pytest.mark.parametrize(
    "text",
    [
        "{abrt: {}}",
        "{abort: {align: [{do: x}]}}",
        "{abort: {align: [{if: 'true', doo: x}]}}",
        "{abort: {align: [{if: 'true', do: [{suspend: cse}]}]}}",
        "{exlets: {one: 3}}",
        "[]",
    ],
)
def test_it_rejects_what_is_no_rule_file(validator: Any, text: str) -> None:
    assert not validator.is_valid(yaml.safe_load(text))
