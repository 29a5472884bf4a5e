"""The schema that editors use is the one that the parser's tables make, and agrees with the parser."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from mendflow.formats.schema import SchemaKind, schema_text
from mendflow.formats.yaml import flow_keys, job_bound_keys, trigger_keys
from mendflow.formats.yaml.document import parse, plain_data
from tests.formats.conftest import Complaints

FOLDER = Path(__file__).parents[2] / "examples"
EXAMPLES = sorted([*FOLDER.glob("*.yaml"), *FOLDER.glob("tasks/*.yaml")])


def data_of(text: str) -> Any:
    """As editors read YAML: by YAML 1.2, where `on` is a word."""
    return plain_data(parse(text, "flow.yaml")[0])


@pytest.fixture(scope="module")
def validator() -> Any:
    schema = json.loads(schema_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


@pytest.mark.parametrize("path", EXAMPLES, ids=[path.name for path in EXAMPLES])
def test_it_accepts_every_example(validator: Any, path: Path) -> None:
    validator.validate(data_of(path.read_text()))


@pytest.mark.parametrize(
    "text",
    [
        "steps: [x, {run: y, name: z}, [a, b]]",
        "jobs: {a: {while: 'x > 3', do: x}}",
        "jobs: {a: {for-each: [1], do: [x]}, b: {for-each: {from: 1, to: 3}, run: x, needs: a, after: [a]}}",
        "steps: [{scope: x, catch: {do: y}, on-alarm: [{every: 1 s, do: z}]}]",
        "steps: [{choose: [{when: 'true', do: x}, {otherwise: y}]}]",
        "x-anything: {a: 1}\nsteps: [{exit: }]",
        "inputs: {a: , b: 3, c: {type: list}}\nsteps: [x]",
        "inputs: {a: {type: file}}\non: {files: {in: drop:x, stable: 1 s}, failure: {notify: [x, y]}}\nsteps: [x]",
    ],
)
def test_it_accepts_sound_flows(validator: Any, text: str) -> None:
    validator.validate(data_of(text))


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "name: x",
        "jobs: {a: x}\nsteps: [x]",
        "jobs: {}",
        "jobs: {a: {rum: x}}",
        "jobs: {a: {run: x, python: 'm:f'}}",
        "jobs: {a: {run: x, memry: 2 GB}}",
        "jobs: {a: {run: x, role: r}}",
        "jobs: {a: {user-task: x}}",
        "jobs: {a: {run: x, retries: many}}",
        "jobs: {a: {run: x, memory: 2}}",
        "jobs: {a: {run: x, submit: later}}",
        "jobs: {a: {while: 'x > 3'}}",
        "jobs: {a: {for-each: {from: 1}, run: x}}",
        "jobs: {a b: x}",
        "steps: [{run: x, needs: a}]",
        "steps: [{pick: {on-alarm: {do: x}}}]",
        "steps: []",
        "on-failure: never\nsteps: [x]",
        "inputs: {a: {typ: list}}\nsteps: [x]",
        "on: push\nsteps: [x]",
        "on: {files: {match: x}}\nsteps: [x]",
        "on: {failure: {}}\nsteps: [x]",
        "on: {schedule: 3}\nsteps: [x]",
        "on: {schedule: {cron: x, tz: UTC}}\nsteps: [x]",
    ],
)
def test_it_rejects_what_the_parser_rejects(validator: Any, complaints: Complaints, text: str) -> None:
    assert not validator.is_valid(data_of(text))
    assert complaints(text)


def test_every_key_has_a_description_for_editors(validator: Any) -> None:
    described = [validator.schema["properties"], validator.schema["$defs"]["step"]["properties"]]
    for properties in described:
        for name, each in properties.items():
            assert each.get("description"), name


def test_every_key_is_on_the_page_about_flow_files() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "flow-format.md").read_text()
    every = [
        flow_keys.FLOW,
        flow_keys.COMMON,
        flow_keys.IN_JOBS,
        job_bound_keys.LIMITS,
        job_bound_keys.RETRY,
        flow_keys.FOR_EACH,
        flow_keys.BRANCH,
        flow_keys.CATCH,
        trigger_keys.ON,
        trigger_keys.ON_FILES,
        trigger_keys.ON_SCHEDULE,
        trigger_keys.ON_END,
    ]
    every += [flow_keys.ON_MESSAGE, flow_keys.ON_ALARM, *(own for _, own in flow_keys.KINDS.values())]
    named = {name for table in every for name in table} | set(flow_keys.KINDS)
    assert sorted(name for name in named if f"`{name}`" not in page) == []


@pytest.mark.parametrize("kind", list(SchemaKind))
def test_every_kind_of_file_has_a_schema(kind: SchemaKind) -> None:
    jsonschema.Draft202012Validator.check_schema(json.loads(schema_text(kind)))
