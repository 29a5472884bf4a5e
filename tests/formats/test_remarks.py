"""What a flow may ask for and probably does not mean: it is told, and the flow runs. And what a user task gives."""

import pytest

from mendflow.core.engine.remarks import remarks_on
from mendflow.core.model.errors import BadFlow
from tests.formats.conftest import Complaints, Reader
from tests.formats.python_flows import Loader

LOOK = "jobs:\n  look:\n    run: echo found=true >> $MENDFLOW_OUTPUT\n  my-task: {run: echo}\n"


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("jobs.look.outputs.found == 'true'", "is never true: a script that writes found=true leaves true"),
        ("jobs.look.outputs.count == '3'", "is never true: a script that writes count=3 leaves 3, not a text"),
        ("'3' == jobs.look.outputs.count && jobs.look.outputs.found", "write `== 3`"),
        ('jobs.look.outputs.count != "0"', "is always true: a script that writes count=0 leaves 0"),
        ("jobs.my-task.outputs.n == '3'", "leaves 3, not a text"),
    ],
)
def test_a_text_that_no_script_leaves_is_remarked_on(read: Reader, condition: str, said: str) -> None:
    [remark] = remarks_on(read(f"{LOOK}  use:\n    if: ${{{{ {condition} }}}}\n    run: echo\n"))
    assert remark.startswith("use: `jobs.")
    assert said in remark


@pytest.mark.parametrize(
    "condition",
    [
        "jobs.look.outputs.found",
        "jobs.look.outputs.found == true",
        "jobs.look.outputs.version == '1.10'",
        "jobs.look.outputs.state == 'ok'",
        "inputs.n == '3'",
    ],
)
def test_a_comparison_that_may_hold_is_not_remarked_on(read: Reader, condition: str) -> None:
    text = f"inputs: {{n: '3'}}\n{LOOK}  use:\n    if: ${{{{ {condition} }}}}\n    run: echo\n"
    assert not remarks_on(read(text))


@pytest.mark.parametrize(
    ("declared", "condition", "said"),
    [
        ("number", 'inputs.n == "3"', "use: `inputs.n == '3'` is never true: the input is a number, not a text"),
        ("boolean", "inputs.n != 'true'", "is always true: the input is true or false, not a text; write `!= true`"),
    ],
)
def test_a_declared_input_that_is_no_text_and_is_compared_with_one_is_remarked_on(
    read: Reader, declared: str, condition: str, said: str
) -> None:
    text = f"inputs: {{n: {{type: {declared}}}}}\n{LOOK}  use:\n    if: ${{{{ {condition} }}}}\n    run: echo\n"
    [remark] = remarks_on(read(text))
    assert said in remark


@pytest.mark.parametrize(
    ("condition", "remarks"),
    [
        ("jobs.look.outputs.peak > 0.5", 1),
        ("0.5 <= jobs.look.outputs.peak && jobs.look.outputs.found", 1),
        ("double(jobs.look.outputs.peak) > 0.5", 0),
        ("jobs.look.outputs.count > 5", 0),
        ("inputs.n > 0.5", 0),
    ],
)
def test_a_decimal_of_a_script_is_a_text_where_it_ends_in_0(read: Reader, condition: str, remarks: int) -> None:
    text = f"inputs: {{n: 1}}\n{LOOK}  use:\n    if: ${{{{ {condition} }}}}\n    run: echo\n"
    told = remarks_on(read(text))
    assert len(told) == remarks
    assert all("peak=0.50 leaves a text" in each and "`double(jobs.look.outputs.peak)`" in each for each in told)


@pytest.mark.parametrize("number", ["1e-06", "5e+21", "1e+300"])
def test_a_number_with_an_exponent_gives_no_example(read: Reader, number: str) -> None:
    text = f"{LOOK}  use:\n    if: ${{{{ jobs.look.outputs.peak < {number} }}}}\n    run: echo\n"
    [told] = remarks_on(read(text))
    assert f"is compared with {number}: a script that writes a decimal with a 0 at its end leaves a text, and" in told


SQUARES = (
    "jobs:\n  work:\n    for-each: {items: [1, 2], tolerate: 1}\n    run: echo\n"
    "  sum:\n    run: |\n      echo ${{ %s }}\n"
    "  all:\n    for-each: [1, 2]\n    run: echo\n"
)


def test_members_of_what_failed_are_remarked_on_under_tolerate(read: Reader) -> None:
    [remark] = remarks_on(read(SQUARES % "jobs.work.outputs.map(o, o.square).sum()"))
    assert remark.startswith("sum: what failed is null in `jobs.work.outputs`")
    assert remark.endswith("leave it out: `jobs.work.outputs.filter(o, o != null)`")


@pytest.mark.parametrize(
    "text",
    [
        "jobs.work.outputs.filter(o, o != null).map(o, o.square)",
        "jobs.work.outputs.map(o, o == null ? 0 : o.square)",
        "jobs.all.outputs.map(o, o.square)",
        "json(jobs.work.outputs)",
    ],
)
def test_what_leaves_failed_ones_out_is_not_remarked_on(read: Reader, text: str) -> None:
    assert not remarks_on(read(SQUARES % text))


def test_the_form_that_is_suggested_under_tolerate_leaves_failed_ones_out(complaints: Complaints) -> None:
    [problem] = complaints(SQUARES % "jobs.work.outputs.square")
    assert "did you mean `jobs.work.outputs.filter(o, o != null).map(o, o.square)`?" in problem


TASK = "jobs:\n  approve: {user-task: Go?, role: boss%s}\n  go: {if: jobs.approve.outputs.%s, run: echo}\n"


@pytest.mark.parametrize(
    ("fields", "field", "said"),
    [
        ("", "approved", "the user task `approve` asks for no outputs; declare it: `fields: {approved: yes or no}`"),
        (", fields: {approved: yes or no}", "aproved", "has no field `aproved` (did you mean `approved`?)"),
    ],
)
def test_what_a_user_task_does_not_give_is_a_problem_before_anybody_is_asked(
    complaints: Complaints, fields: str, field: str, said: str
) -> None:
    [problem] = complaints(TASK % (fields, field))
    assert said in problem


def test_a_condition_on_a_field_should_say_that_it_is_yes_or_no(read: Reader) -> None:
    assert not remarks_on(read(TASK % (", fields: {approved: yes or no}", "approved")))
    [remark] = remarks_on(read(TASK % (", fields: {approved: what you think}", "approved")))
    assert "`fields: {approved: yes or no}`" in remark


@pytest.mark.parametrize(
    ("when", "refused"), [("ok", "name a field of it, `task.approved`"), ("ok.approved", ""), ('ok["approved"]', "")]
)
def test_a_whole_user_task_is_no_condition(python: Loader, when: str, refused: str) -> None:
    body = f'ok = task("Go?", role="boss", fields={{"approved": "yes or no"}})\none.options(when={when})(1)'
    if not refused:
        assert not remarks_on(python(body))
        return
    with pytest.raises(BadFlow) as caught:
        python(body)
    assert refused in str(caught.value)


NAMES = "inputs: {files: {type: files}}\njobs:\n  a:\n    for-each: {f: '${{ inputs.files }}'}\n    run: |\n      %s\n"


def test_the_name_of_a_file_in_a_command_is_remarked_on_unless_it_is_quoted(read: Reader) -> None:
    [remark] = remarks_on(read(NAMES % "echo ${{ f.name }} ${{ index }}"))
    assert remark.startswith("a: `${{ f.name }}` puts the name of a file into the command as it is")
    assert "write `${{ quote(f.name) }}`" in remark
    assert not remarks_on(read(NAMES % "echo ${{ quote(f.name) }} ${{ index }}"))
