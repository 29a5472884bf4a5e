"""Flows in our own words as processes, and what of them has no words in BPEL."""

from pathlib import Path

import pytest
from lxml import etree

from mendflow.core.model.errors import BadFlow
from mendflow.core.model.expr import XPATH, Expr
from mendflow.core.model.flow import Catch, Choose, Flow, ForEach, Invoke, Parallel, Rethrow, Scope, Throw, While
from mendflow.core.model.xml import XmlCopy
from mendflow.formats.bpel import load_bpel
from mendflow.formats.bpel.writing import write_bpel
from mendflow.formats.bpel.writing.traversal import all_of
from mendflow.formats.yaml import read_flow


def processed(folder: Path, text: str) -> Flow:
    """The flow as it is read again from the process that it was written as."""
    files = write_bpel(read_flow(text, "f.yaml"))
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    return load_bpel(folder / next(iter(files)))


def refused(text: str) -> list[str]:
    with pytest.raises(BadFlow) as error:
        write_bpel(read_flow(text, "f.yaml"))
    return [each.message for each in error.value.problems]


def test_a_job_is_an_invoke_of_the_queue_with_its_description(tmp_path: Path) -> None:  # FM-2
    flow = processed(tmp_path, "name: hello\nsteps:\n  - name: greet\n    run: echo hello\n    time: 1 min\n")
    (call,) = all_of(flow.body, Invoke)
    assert (call.name, call.partner, call.operation) == ("greet", "queue", "run")
    literal = next(each for each in all_of(flow.body, str) if each.startswith("<literal"))
    assert "<jsdl-posix:Argument>echo hello</jsdl-posix:Argument>" in literal
    assert "<jsdl-posix:WallTimeLimit>60</jsdl-posix:WallTimeLimit>" in literal


def test_a_job_that_nobody_waits_for_is_sent_one_way(tmp_path: Path) -> None:  # FM-5
    flow = processed(tmp_path, "name: hello\nsteps:\n  - name: greet\n    run: echo hello\n    submit: forget\n")
    (call,) = all_of(flow.body, Invoke)
    assert (call.operation, call.gets) == ("submitAndForget", None)


def test_texts_with_expressions_are_put_into_the_description_when_the_job_runs(tmp_path: Path) -> None:
    text = """
name: f
inputs: {who: {type: string}}
steps:
  - {name: greet, run: 'echo "$A" ${{ inputs.who }} }}', env: {A: "dear ${{ inputs.who }}", B: plain}}
"""
    flow = processed(tmp_path, text)
    copies = [each for each in all_of(flow.body, XmlCopy) if each.target.expression is not None]
    assert {each.source.expression for each in copies} == {
        Expr('"echo \\"$A\\" " + string(inputs.who) + " }}"'),
        Expr('"dear " + string(inputs.who)'),
    }
    literal = next(each for each in all_of(flow.body, str) if each.startswith("<literal"))
    root = etree.fromstring(literal)[0]
    for copy in copies:
        assert copy.target.expression is not None
        (place,) = root.xpath(copy.target.expression.text.replace("$run.parameters", "."))
        assert "mendflow-expression-" in place.text


def test_a_branch_that_fails_leaves_the_others_to_end_and_its_links_false(tmp_path: Path) -> None:
    flow = processed(tmp_path, "name: f\njobs:\n  a: {run: 'true'}\n  b: {needs: a, run: 'true'}\n")
    (both,) = all_of(flow.body, Parallel)
    first, second = both.branches
    assert isinstance(first, Scope) and [each.fault for each in first.catches] == [None]
    assert [each.when for each in first.sources] == [Expr("!failed1")]
    assert second.join == Expr("$link1", "xpath") and second.suppress_join_failure
    assert [each.fault for each in all_of(flow.body, Throw)] == ["{urn:mendflow:flow:f}branchFailed"]


def test_conditions_stay_in_cel_and_inputs_are_parts_of_the_first_message(tmp_path: Path) -> None:
    flow = processed(
        tmp_path,
        """
name: f
inputs: {n: {type: number}}
variables: {turns: 0}
steps:
  - choose:
      - {when: inputs.n > 3, do: echo large}
      - otherwise: echo small
  - while: turns < 2
    do: [{set: {turns: "${{ turns + 1 }}"}}]
  - for-each: {from: 1, to: 2}
    do: echo each
  - wait: 1 s
""",
    )
    assert [each.branches[0].when for each in all_of(flow.body, Choose)][-1] == Expr("inputs.n > 3")
    assert [each.condition for each in all_of(flow.body, While)] == [Expr("turns < 2")]
    assert [(each.first, each.last) for each in all_of(flow.body, ForEach)] == [
        (Expr("1", "xpath"), Expr("2", "xpath"))
    ]
    assert flow.xml is not None
    (part,) = flow.xml.messages["{urn:mendflow:flow:f}begin"]
    assert (part.name, part.type) == ("n", "{http://www.w3.org/2001/XMLSchema}double")


def test_handlers_stay_with_their_scopes(tmp_path: Path) -> None:
    flow = processed(
        tmp_path,
        """
name: f
steps:
  - scope: [{throw: mine}]
    catch:
      - {fault: mine, do: echo mine}
      - {do: echo all}
    undo: echo undone
""",
    )
    caught = [each.fault for each in all_of(flow.body, Catch)]
    assert set(caught) == {"mine", None}
    assert len([each for each in all_of(flow.body, Scope) if each.compensation is not None]) == 1


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("jobs: {a: {run: 'true'}, b: {needs: a, run: 'echo ${{ jobs.a.outputs.x }}'}}", "asks for what a job left"),
        ("jobs: {a: {run: 'true', retries: 3}}", "a: JSDL cannot say how often it is tried again"),
        (
            "steps: [{name: a, run: 'true'}]\noutputs: {x: '${{ jobs.a.outputs.y }}'}",
            "f: what it puts out comes from its",
        ),
        ("steps: [{for-each: ['1', '2'], do: 'true'}]", "BPEL counts from a number to a number"),
        ("steps: [{user-task: Approve, role: boss}]", "BPEL has no word for a user task"),
        ("steps: [{name: a, run: 'true', if: 'true'}]", "a: BPEL has no `when` on activities"),
        ("inputs: {x: {type: list}}\nsteps: ['true']", "x: an input that is a list has no type in XML"),
        ("inputs: {x: {default: 1}}\nsteps: ['true']", "x: parts of messages have no defaults"),
        ("steps: [{for-each: {from: 1, to: 3, tolerate: 10 %}, run: x}]", "BPEL has no word for `tolerate`"),
        ("steps: [{for-each: {from: 1, to: 3, tolerate: 1}, run: x}]", "BPEL has no word for `tolerate`"),
        ("steps: [{for-each: {from: 1, to: 3}, run: 'echo ${{ index }}'}]", "and has no `index`"),
        ("steps: [{for-each: {x: [1], y: [2]}, run: x}]", "BPEL counts from a number to a number"),
        ("on-unhandled: hold\nsteps: ['true']", "f: BPEL has no word for `on-unhandled`"),
        ("on: {failure: {notify: 'https://example.org'}}\nsteps: ['true']", "f: BPEL has no word for `on`"),
        ("jobs: {a: {run: x, retries: [{on: 75, times: 2}]}}", "a: JSDL cannot say how often it is tried again"),
        ("jobs: {a: {run: x, on-failure: 'echo ${{ fault.message }}'}}", "`fault` is known here alone"),
        ("inputs: {x: {type: table}}\nsteps: ['true']", "x: an input that is a table has no type in XML"),
        ("variables: {v: [1]}\nsteps: ['true']", "v: let it begin with a text, a number or a boolean"),
    ],
)
def test_what_is_ours_alone_is_refused_by_name(text: str, complaint: str) -> None:
    assert any(complaint in each for each in refused(f"name: f\n{text}\n")), refused(f"name: f\n{text}\n")


def test_what_is_done_after_a_failure_and_counted_loops_stay(tmp_path: Path) -> None:  # FM-2
    flow = processed(
        tmp_path,
        """\
name: f
jobs:
  a: {run: "true", on-failure: echo bad}
  b: {for-each: {from: 1, to: 3, collect: {x: "${{ item }}"}}, run: x}
""",
    )
    assert list(all_of(flow.body, Rethrow))
    (loop,) = all_of(flow.body, ForEach)
    assert (loop.last, loop.collect_map) == (Expr("3", XPATH), {})
