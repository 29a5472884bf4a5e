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
        ("echo ${{ inputs.rows.size() }} ${{ inputs.text.contains('a') }}", ""),
        ("echo ${{ inputs.rows.map(r, quote(r)).join(' ') }}", ""),
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


TABLE = """
name: f
inputs:
  t: {type: table, columns: {lane: number}}
  words: {type: list, default: [a]}
  count: 3
jobs:
  a:
    for-each: {LOOP}
    run: RUN
"""


@pytest.mark.parametrize(
    ("loop", "command", "told"),
    [
        ("s: '${{ inputs.t }}'", "echo ${{ s.sample }}", "s.sample"),
        ("s: '${{ inputs.t }}'", "echo x > ${{ s.sample + '.txt' }}", "s.sample + '.txt'"),
        ("s: '${{ inputs.t }}'", "echo ${{ s }}", "s"),
        ("s: '${{ inputs.t }}'", "echo ${{ s['sample'] }}", "s['sample']"),
        ("s: '${{ inputs.t }}'", "echo ${{ s.lane }} ${{ quote(s.sample) }} ${{ index }}", ""),
        ("s: '${{ inputs.t.filter(r, r.lane > 1) }}'", "echo ${{ s.sample }}", "s.sample"),
        ("g: '${{ inputs.t.group_by(\"sample\") }}'", "echo ${{ g.key }}", "g.key"),
        ("g: '${{ inputs.t.group_by(\"sample\") }}'", "echo ${{ g.items[0].other }}", "g.items[0].other"),
        ("g: '${{ inputs.t.group_by(\"sample\") }}'", "echo ${{ g.items.size() }} ${{ g.items[0].lane }}", ""),
        ("w: '${{ inputs.words }}'", "echo ${{ w }}", "w"),
        ("w: ['${{ inputs.words[0] }}', b]", "echo ${{ w }}", "w"),
        ("w: '${{ inputs.words }}', n: [1, 2]", "echo ${{ n }} ${{ w }}", "w"),
        ("n: [1, 2]", "echo ${{ n }} ${{ inputs.count }}", ""),
        ("n: [1, 2]", "echo ${{ inputs.words[0] }}", "inputs.words[0]"),
        ("n: [1, 2]", "echo ${{ inputs.t[0].sample }} ${{ inputs.t[0].lane }}", "inputs.t[0].sample"),
        ("n: [1, 2]", "echo ${{ inputs.words.join(' ') }}", "inputs.words.join(' ')"),
    ],
)
def test_check_tells_of_cells_and_parts_of_lists_too(read: Reader, loop: str, command: str, told: str) -> None:  # SE-3
    found = inserted_inputs(read(TABLE.replace("LOOP", loop).replace("RUN", json.dumps(command))))
    assert len(found) == bool(told), found
    assert all(f"`${{{{ {told} }}}}` puts a text that others choose" in each for each in found)
    assert all(f"write `${{{{ quote({told}) }}}}` without" in each for each in found)


def test_a_loop_in_a_loop_passes_on_what_others_choose_and_hides_it_by_its_own_names(read: Reader) -> None:  # SE-3
    inner = """
name: f
inputs: {t: {type: table}}
jobs:
  outer:
    for-each: {g: "${{ inputs.t.group_by('sample') }}"}
    jobs:
      a: {for-each: {r: "${{ g.items }}"}, run: "echo ${{ r.lane }}"}
      b: {for-each: {g: [1, 2]}, run: "echo ${{ g }}"}
"""
    [told] = inserted_inputs(read(inner))
    assert "`${{ r.lane }}` puts" in told


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
