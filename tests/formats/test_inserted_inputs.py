"""Inputs in commands: as variables of the environment, which no shell interprets, or as they are, which is told of."""

import json

import pytest

from mendflow.core.engine.inserted_inputs import inserted_inputs
from mendflow.core.engine.plan import walk_activities
from mendflow.core.model.flow import Flow, JobActivity
from tests.formats.conftest import Reader

INPUTS = """
inputs:
  text: {type: string, default: a}
  count: 3
  max-size: {type: number, default: 4}
  rows: [1, 2]
  free:
  table: {type: file}
"""


def flow_with(read: Reader, command: str, more: str = "") -> Flow:
    return read(f"name: f\n{INPUTS}\njobs:\n  a:\n    run: {json.dumps(command)}\n{more}")


def env_of(flow: Flow) -> dict[str, object]:
    [job] = [each for each in walk_activities(flow) if isinstance(each, JobActivity)]
    return dict(job.env)


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("echo ${{ inputs.text }}", "INPUT_TEXT"),
        ('echo "${{ inputs.text }}"', "INPUT_TEXT"),
        ("echo ${{ inputs.free }}", "INPUT_FREE"),
        ("echo ${{ '--name=' + inputs.text }}", "INPUT_TEXT"),
        ('echo ${{ inputs["text"] + ".txt" }}', "INPUT_TEXT"),
        ("echo ${{ inputs.rows }}", "INPUT_ROWS"),
        ("echo ${{ quote(inputs.text) }}", ""),
        ("echo ${{ inputs.count }}", ""),
        ('echo ${{ inputs["max-size"] }}', ""),
        ("echo ${{ inputs.text == 'a' ? '-v' : '' }}", ""),
        ('echo "$INPUT_TEXT"', ""),
    ],
)
def test_check_tells_of_texts_that_a_shell_would_run(read: Reader, command: str, told: str) -> None:  # SE-3
    found = inserted_inputs(flow_with(read, command))
    assert len(found) == bool(told)
    assert all(f'"${told}"' in sentence and sentence.startswith("a: ") for sentence in found)


def test_other_programs_than_shells_run_no_texts(read: Reader) -> None:
    assert not inserted_inputs(flow_with(read, "print('${{ inputs.text }}')", "    shell: python"))


@pytest.mark.parametrize(
    ("command", "env"),
    [
        ('echo "$INPUT_TEXT"', {"INPUT_TEXT": "${{ inputs.text }}"}),
        ("echo ${INPUT_MAX_SIZE:-3}", {"INPUT_MAX_SIZE": '${{ inputs["max-size"] }}'}),
        ("echo $INPUT_ROWS", {"INPUT_ROWS": "${{ inputs.rows }}"}),
        ("echo $INPUT_TEXTS INPUT_COUNT", {}),
        ("cat $INPUT_TABLE", {}),
        ("echo hello", {}),
    ],
)
def test_a_script_that_names_the_variable_of_an_input_has_it(
    read: Reader, command: str, env: dict[str, str]
) -> None:  # SE-3
    assert env_of(flow_with(read, command)) == env


def test_a_variable_that_the_flow_sets_itself_stays(read: Reader) -> None:
    assert env_of(flow_with(read, "echo $INPUT_TEXT", "    env: {INPUT_TEXT: own}")) == {"INPUT_TEXT": "own"}
