"""What is wrong with a flow file is told all at once, each with its place and what was probably meant."""

from pathlib import Path

import pytest

from mendflow.core.model.errors import BadFlow
from mendflow.formats.check import check
from mendflow.formats.yaml import load_flow, read_flow
from tests.formats.conftest import Complaints


def test_all_problems_come_at_once_in_the_order_of_the_file(complaints: Complaints) -> None:
    found = complaints("""\
nam: x
inputs:
  limit: {type: nummer, default: 3}
jobs:
  fetch:
    run: one
    memry: 2 GB
  count:
    needs: fecth
    run: echo ${{ jobs.fetch.outputs.n + inputs.limt }}
    time: soon
    if: 1 +
""")
    assert found == [
        "1:1: a flow has no key `nam` (did you mean `name`?)",
        "3:17: one of string, number, boolean, list, map, table, file, files is expected here, not the text `nummer` "
        "(did you mean `number`?)",
        "7:5: a `run` step has no key `memry` (did you mean `memory`?)",
        "9:12: there is no job `fecth` beside `count` (did you mean `fetch`?)",
        "10:42: the flow has no input `limt`; declare it under `inputs:` (did you mean `limit`?)",
        "11:11: a duration (such as 90 s, 10 min, 1h30m, 2 days) is expected here, not the text `soon`",
        "12:12: in the expression `1 +`: the expression ends too early",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the file is empty"),
        ("# only a remark\n", "the file is empty"),
        ("- a\n", "1:1: a flow is a map with `jobs:` or `steps:`, not a list"),
        ("name: x\n", "1:1: the flow does nothing: give it `jobs:` or `steps:`"),
        ("jobs: {a: x}\nsteps: [x]\n", "2:1: a flow has `jobs` or `steps`, not both"),
        ("jobs: {}\n", "1:7: `jobs` needs at least one job"),
        ("steps: []\n", "1:8: a list of steps needs at least one step"),
        ("jobs:\n  a:\n", "2:5: a step is expected here"),
        ("jobs:\n  a:\n    run:\n", "3:5: `run` has no value: a shell command is expected"),
        ("jobs:\n  a: {run: ' '}\n", "2:12: the command is empty"),
        ("jobs:\n  a: x\n  a: y\n", "3:3: `a` is given twice; it stands in line 2 already"),
        ("jobs:\n  a b: x\n", "2:3: a name (letters, digits, _ and -; first a letter) is expected here"),
        (f"jobs:\n  {'a' * 101}: x\n", "2:3: a name may have 100 characters; this has 101"),
        ("jobs: {a: x}\n---\njobs: {b: y}\n", "2:1: a second document starts here"),
        ("jobs:\n\ta: x\n", "2:1: a tab stands where YAML wants spaces"),
        ("jobs: {a: x\n", "this is not YAML: did not find expected ',' or '}'"),
        ("jobs:\n  a:\n    run: echo a: b\n", "3:16: a second `:` in one line"),
        ("jobs:\n  a: @x\n", "2:6: a text that starts with `@` must be in quotes"),
        ("jobs:\n  a: \x00\n", "2:6: this character cannot stand in a flow file"),
        ("jobs: !!python/object:os.system\n  a: x\n", "1:7: the tag `!!python/object:os.system` is not taken"),
        ("jobs: !mine {a: x}\n", "1:7: the tag `!mine` is not taken"),
        ("jobs: *x\n", "1:7: `*x` stands for nothing"),
        ("jobs: &x {a: *x}\n", "1:14: `*x` stands for nothing: no `&x` ended before it"),
        ("? [a]\n: b\n", "1:3: a key must be a word"),
        ("jobs:\n  a: {<<: 3, run: x}\n", "2:11: `<<` takes a map"),
        ("jobs:\n  a: {run: x, python: 'm:f'}\n", "2:15: a step does one thing; this has `run` and `python`"),
        ("jobs:\n  a: {rum: x}\n", "2:6: nothing says what this step does; give it one of"),
        ("jobs:\n  a: {run: x, role: r}\n", "2:15: `role` goes with `user-task`, not with `run`"),
        ("jobs:\n  a: {user-task: x}\n", "2:6: `role` is missing: who may do it"),
        ("jobs:\n  a: {run: x, name: b}\n", "2:15: a job of a `jobs:` map has its name before the colon"),
        ("steps:\n  - {run: x, needs: a}\n", "2:14: `needs` is for the jobs of a `jobs:` map"),
        ("jobs:\n  a: {steps: [{name: b, run: x}]}\n  b: x\n", "`b` is the name of something in line 2 already"),
        ("jobs:\n  a: {run: x, needs: a}\n", "2:22: `a` cannot wait for itself"),
        ("jobs:\n  a: x\n  b: {run: x, needs: a, after: a}\n", "3:32: `a` stands under `needs` already"),
        ("jobs:\n  a: {run: x, cpus: many}\n", "2:21: a number from 0 on, or ${{ an expression }}, is expected here"),
        ("jobs:\n  a: {run: x, memory: 2}\n", "2 lacks its unit (did you mean `2 GB`?)"),
        ("jobs:\n  a: {run: x, time: 5 fortnights}\n", "2:21: a duration"),
        ("jobs:\n  a: {run: x, retries: 1.5}\n", "2:24: a whole number from 0 on is expected here"),
        ("jobs:\n  a: {run: x, submit: notfy}\n", "(did you mean `notify`?)"),
        ("jobs:\n  a: {run: x, env: [a]}\n", "2:20: a map of texts is expected here, such as {NAME: value}"),
        ("jobs:\n  a: {run: x, limits: {files: 3}}\n", "2:24: `limits` has no key `files`"),
        ("jobs:\n  a: {run: x, inputs: {a.csv: nope.csv}}\n", "2:31: there is no file `nope.csv`"),
        ("jobs:\n  a: {run: x, inputs: {../a: 'http://x'}}\n", "`../a` must be a path inside the job's folder"),
        ("jobs:\n  a: {run: x, files: {f: /etc/passwd}}\n", "`/etc/passwd` must be a path inside the job's folder"),
        ("jobs:\n  a: {stage: {f: nope.csv}}\n", "2:18: there is no file `nope.csv`"),
        ("jobs:\n  a: {for-each: 3, run: x}\n", "2:17: a list is expected here"),
        ("jobs:\n  a: {for-each: {items: [1], from: 2}, run: x}\n", "`for-each` goes over lists with names"),
        ("jobs:\n  a: {for-each: {from: 2}, run: x}\n", "`from` and `to` go together"),
        ("jobs:\n  a: {for-each: {items: [], as: list}, run: x}\n", "`list` means something in expressions already"),
        ("steps:\n  - choose: [{when: true}]\n", "2:14: a branch has `when` and `do`, or `otherwise`"),
        ("steps:\n  - choose: [{otherwise: x}, {when: true, do: y}]\n", "`otherwise` stands alone, and last"),
        ("steps:\n  - while: true\n", "2:5: `while` needs `do:`"),
        ("steps:\n  - rethrow:\n", "`rethrow` stands only inside the `do` of a `catch`"),
        ("steps:\n  - compensate: all\n", "`compensate` stands only inside"),
        ("steps:\n  - pick: {}\n", "`pick` needs something to wait for"),
        ("steps:\n  - pick: {on-alarm: {every: 1 s, do: x}}\n", "`every` is for the alarms of a scope"),
        ("steps:\n  - scope: x\n    on-alarm: {do: x}\n", "an alarm needs `after`"),
        ("steps:\n  - set: {3x: 1}\n", "2:11: a variable is expected here"),
        ("steps:\n  - wait-until: tomorrow\n", "2:17: a moment"),
        ("steps:\n  - {run: x, if: 'a ${{ true }}'}\n", "put all of it into one ${{ ... }}"),
        ("steps:\n  - python: nope\n", "2:13: a function, as `file.py:function`"),
        ("steps:\n  - python: nope.py:f\n", "2:13: there is no file `nope.py`"),
        ("steps:\n  - python: ../x.py:f\n", "`../x.py` leads out of the flow's folder"),
        ("inputs: {a: {type: list, default: 3}}\nsteps: [x]\n", "the default of a list must be a list"),
        ("inputs: [a]\nsteps: [x]\n", "1:9: `inputs` is a map of inputs by name, not a list"),
    ],
)
def test_each_mistake_has_its_place_and_its_sentence(complaints: Complaints, text: str, said: str) -> None:
    found = complaints(text)
    assert any(said in line for line in found), found


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("steps:\n  - echo ${{ a\n", "2:5: `${{` has no `}}` after it"),
        ("steps:\n  - |\n    echo\n    x ${{ 1 + }} ${{ foo(2) }}\n", "4:14: in the expression `1 +`"),
        (
            "steps:\n  - |\n    echo\n    x ${{ 1 }} ${{ foo(2) }}\n",
            "4:23: in the expression `foo(2)`: there is no function",
        ),
        ('steps:\n  - "echo ${{ total }}"\n', "2:15: there is no variable `total` here"),
        ("steps:\n  - {name: a, run: x}\n  - x ${{ a }}\n", "there is no variable `a` (did you mean `jobs.a`?)"),
        ("inputs: {n: 1}\nsteps: ['x ${{ n }}']\n", "there is no variable `n` (did you mean `inputs.n`?)"),
        ("variables: {total: 1}\nsteps: ['x ${{ totl }}']\n", "`totl` here (did you mean `total`?)"),
        ("steps:\n  - x ${{ jobs[inputs.n].outputs }}\n", "needs a name that is written out"),
        ("steps:\n  - x ${{ jobs.b.outputs }}\n  - {name: b, run: x}\n", "2:11: `jobs.b` is used before it"),
        ("steps:\n  - x ${{ links.a }}\n", "`links` is not for flow files"),
        ("jobs:\n  a: x ${{ jobs.a.outputs }}\n", "`jobs.a` is asked for by `a` itself"),
        ("steps:\n  - x\noutputs: {n: '${{ jobs.stp.outputs }}'}\n", "there is no job `stp` in this flow"),
        (
            "jobs:\n  l: {for-each: [1], steps: [{name: inner, run: x}]}\n  o: x ${{ jobs.inner.outputs }}\n",
            "3:12: `jobs.inner` cannot be seen here: the loop `l` has several jobs inside, and `collect:` says what it "
            'gives of them: write `for-each: {item: ..., collect: "${{ jobs.inner.outputs }}"}` there, and '
            "`${{ jobs.l.outputs }}` here",
        ),
        (
            "jobs:\n  l: {scope: [{name: inner, run: x}], variables: {v: 1}}\n  o: x ${{ jobs.inner.outputs }}\n",
            "3:12: `jobs.inner` cannot be seen here: it is inside a loop, a scope or a handler that this is not in",
        ),
        ("jobs:\n  l: {for-each: [1], run: x}\n  o: x ${{ item }}\n", "3:12: there is no variable `item` here"),
        ("steps:\n  - scope: x\n    variables: {v: 1}\n  - y ${{ v }}\n", "4:11: there is no variable `v` here"),
    ],
)
def test_expressions_are_judged_where_they_stand(complaints: Complaints, text: str, said: str) -> None:
    found = complaints(text)
    assert any(said in line for line in found), found


@pytest.mark.parametrize(
    ("text", "circle"),
    [
        ("jobs:\n  a: {run: x, needs: b}\n  b: {run: x, needs: a}\n", "a -> b -> a"),
        ("jobs:\n  a: {run: x, needs: c}\n  b: {run: x, needs: a}\n  c: {run: x, after: b}\n", "a -> c -> b -> a"),
        ("jobs:\n  a: {run: 'x ${{ jobs.b.outputs }}'}\n  b: {run: x, needs: a}\n", "a -> b -> a"),
    ],
)
def test_a_circle_of_needs_is_spelled_out(complaints: Complaints, text: str, circle: str) -> None:
    (found,) = complaints(text)
    assert found.endswith(f"these jobs wait for each other in a cycle: {circle}")


def test_a_missing_python_function_is_found_with_the_one_that_was_meant(tmp_path: Path) -> None:
    (tmp_path / "work.py").write_text("def count():\n    pass\n")
    with pytest.raises(BadFlow, match=r"work.py has no function `cuont` \(did you mean `count`\?\)"):
        read_flow("steps:\n  - python: work.py:cuont\n", tmp_path / "f.yaml")


def test_a_python_function_may_come_about_in_any_way(tmp_path: Path) -> None:
    (tmp_path / "work.py").write_text("from math import sqrt\nif True:\n    def a(): pass\nb = lambda: 1\n")
    for name in ("sqrt", "a", "b"):
        read_flow(f"steps:\n  - python: work.py:{name}\n", tmp_path / "f.yaml")


def test_a_step_in_a_loop_may_use_what_a_later_one_left_before(tmp_path: Path) -> None:
    text = "steps:\n  - while: true\n    do: ['x ${{ has(jobs.late) }}', {name: late, run: y}]\n"
    read_flow(text, tmp_path / "f.yaml")


def test_a_misspelt_file_is_suggested(tmp_path: Path) -> None:
    (tmp_path / "numbers.csv").write_text("1")
    with pytest.raises(BadFlow, match=r"there is no file `numbrs.csv` in .* \(did you mean `numbers.csv`\?\)"):
        read_flow("steps:\n  - {run: x, inputs: [numbrs.csv]}\n", tmp_path / "f.yaml")


def test_called_files_stay_in_the_folder_and_never_form_a_circle(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    (tmp_path / "outside.yaml").write_text("steps: [x]\n")
    (inside / "link.yaml").symlink_to(tmp_path / "outside.yaml")
    (inside / "a.yaml").write_text("steps: [{call: b.yaml}]\n")
    (inside / "b.yaml").write_text("steps: [{call: a.yaml}]\n")
    (inside / "out.yaml").write_text("steps: [{call: ../outside.yaml}, {call: link.yaml}, {call: /etc/x.yaml}]\n")
    with pytest.raises(BadFlow, match=r"these flows call each other in a cycle: a\.yaml -> b\.yaml -> a\.yaml"):
        load_flow(inside / "a.yaml")
    with pytest.raises(BadFlow) as caught:
        load_flow(inside / "out.yaml")
    assert [each.message.partition("`")[2].partition("`")[0] for each in caught.value.problems] == [
        "../outside.yaml",
        "link.yaml",
        "/etc/x.yaml",
    ]


def test_what_a_called_flow_is_given_is_judged_too(tmp_path: Path) -> None:
    (tmp_path / "sub.yaml").write_text("inputs: {limit: , n: 2}\nsteps: [x]\n")
    (tmp_path / "bad.yaml").write_text("steps: [{rum: x}]\n")
    (tmp_path / "a.yaml").write_text(
        "steps:\n  - {call: sub.yaml, with: {limt: 1}}\n  - call: bad.yaml\n  - call: sbu.yaml\n"
    )
    with pytest.raises(BadFlow) as caught:
        load_flow(tmp_path / "a.yaml")
    found = [str(each).replace(f"{tmp_path}/", "") for each in caught.value.problems]
    assert found[0] == "a.yaml:2:28: the flow `sub` needs the input `limit` under `with:`"
    assert found[1] == "a.yaml:2:29: the flow `sub` has no input `limt` (did you mean `limit`?)"
    assert found[2] == "a.yaml:4:11: there is no flow file `sbu.yaml` (did you mean `sub.yaml`?)"
    assert found[3].startswith("bad.yaml:1:9: nothing says what this step does")


def test_a_file_that_is_too_large_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "large.yaml"
    with path.open("wb") as file:
        file.truncate(100_000_000)
    with pytest.raises(BadFlow, match="the file is 100 MB; a flow file may have 10 MB"):
        load_flow(path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: " + "[" * 5000, "nested more than 100 deep"),
        ("{a: " * 5000, "nested more than 100 deep"),
        ("- " * 5000, "nested more than 100 deep"),
        ("x-a: [" + "a," * 250_000 + "a]", "more than 200,000 values"),
        (
            "x-0: &a0 [x,x,x,x,x,x,x,x,x]\n"
            + "".join(f"x-{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12)),
            "with its aliases written out this holds more than 300,000 values",
        ),
        (
            "x-0: &a0 {k: 1}\n"
            + "".join(f"x-{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}], k{n}: *a{n - 1}}}\n" for n in range(1, 40)),
            "with its aliases written out",
        ),
    ],
    ids=["lists", "maps", "dashes", "long", "laughs", "merges"],
)
def test_a_text_that_grows_without_bound_is_refused(complaints: Complaints, text: str, said: str) -> None:
    assert any(said in line for line in complaints(text))


def test_very_many_problems_end_with_a_word_on_it(complaints: Complaints) -> None:
    found = complaints("jobs:\n" + "".join(f"  j{n}: {{run: x, needs: q{n}}}\n" for n in range(1000)))
    assert len(found) == 201
    assert "there may be more; these are the first 200 problems" in found[-1]


def test_bytes_that_are_not_utf_8_have_a_place(tmp_path: Path) -> None:
    path = tmp_path / "f.yaml"
    path.write_bytes(b"jobs:\n  a: caf\xe9\n")
    with pytest.raises(BadFlow, match=r"f.yaml:2:9: this is not UTF-8 text: byte 0xe9"):
        load_flow(path)


def test_check_goes_through_all_files(tmp_path: Path) -> None:
    (tmp_path / "good.yaml").write_text("steps: [x]\n")
    (tmp_path / "bad.yaml").write_text("steps: [{rum: x}]\n")
    files = [tmp_path / name for name in ("good.yaml", "bad.yaml", "gone.yaml", "flow.txt")]
    found = [str(each).replace(f"{tmp_path}/", "") for each in check(files)]
    assert found[0].startswith("bad.yaml:1:9: nothing says what this step does")
    assert found[1] == "gone.yaml: there is no such file (did you mean `good.yaml`?)"
    assert found[2] == (
        "flow.txt: a flow file ends in .yaml, .yml, .py, .bpel, .jsdl or .xml for a job, or .json for a trace"
    )
    assert len(found) == 3


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "jobs:\n  a: {run: x, files: {table: t}}\n  b: cat ${{ jobs.a.files.tabel }}\n",
            "3:14: `a` leaves no file `tabel`; name it under its `files:` (did you mean `table`?)",
        ),
        ("jobs:\n  a: x\n  b: echo ${{ jobs.a.files.y }}\n", "3:15: `a` leaves no file `y`"),
        (
            "jobs:\n  a: x\n  b: echo ${{ jobs.a.output.n }}\n",
            "`jobs.a` has no `output`; it has outputs, files, exit_code (did you mean `outputs`?)",
        ),
        ("jobs:\n  a: x\n  b: echo ${{ jobs.a.rows }}\n", "(did you mean `jobs.a.outputs.rows`?)"),
        (
            "jobs:\n  a: {run: x, for-each: {items: [1], collect: '${{ jobs.a.files.y }}'}}\n",
            "`a` leaves no file `y`",
        ),
        ("variables: {total: 0}\nsteps: [{set: {totl: 1}}]\n", "2:16: there is no variable `totl` to set"),
        ("steps: [{choose: []}]\n", "1:18: a choice needs at least one branch"),
        ("steps: [{user-task: '', role: r}]\n", "1:21: a title is expected here"),
        ("steps: [{user-task: t, role: ' '}]\n", "the name of a role is expected here"),
        (
            "steps: [{receive: orders}, {reply: order}]\n",
            "nothing receives from the channel `order`, so nobody can be answered (did you mean `orders`?)",
        ),
        ('jobs:\n  a: {run: "x\\0y"}\n', "2:12: this text holds a NUL character"),
        ("jobs:\n  a: {run: x, env: {A=B: c}}\n", "2:21: the name of an environment variable"),
        ("jobs:\n  a: {run: x, env: {'': c}}\n", "2:21: the name of an environment variable"),
        ("jobs:\n  a: {run: x, time: 0 s}\n", "2:21: 0 s is not enough for anything"),
        ("jobs:\n  a: {run: x, memory: 0 GB}\n", "2:23: 0 GB is not enough for anything"),
        ("jobs:\n  a: {run: x, time: 1000 weeks}\n", "1000 weeks is longer than ten years"),
        ("jobs:\n  a: {run: x, if: '1'}\n", "2:19: a condition gives true or false; `1` never does"),
        ("jobs:\n  a: {run: x, if: \"${{ 'yes' }}\"}\n", "a condition gives true or false; `'yes'` never does"),
        ("jobs:\n  a: x\n  b: {run: y, depends-on: a}\n", "(did you mean `needs`?)"),
        ("jobs:\n  a: x\n  b: {run: y, depends_on: a}\n", "(did you mean `needs`?)"),
        ("jobs:\n  a: x\n  b: {run: y, dependencies: [a]}\n", "(did you mean `needs`?)"),
        ("jobs:\n  a: {cmd: x}\n", "(did you mean `run`?)"),
        ("jobs:\n  a: {script: x}\n", "(did you mean `run`?)"),
        ("jobs:\n  a: {command: x}\n", "(did you mean `run`?)"),
        ("jobs:\n  a: {run: x, environment: {A: b}}\n", "environment variables are given under `env:`"),
        ("jobs:\n  a: {run: x, for-each: [1], min-success: 1}\n", "`min-success` belongs inside `for-each:`"),
        ("jobs:\n  a: {run: x, for-each: [1], as: n}\n", "`as` belongs inside `for-each:`"),
    ],
)
def test_what_is_certainly_wrong_is_told_before_anything_runs(complaints: Complaints, text: str, said: str) -> None:
    found = complaints(text)
    assert any(said in each for each in found), found


def test_what_may_well_be_right_is_not_complained_about(tmp_path: Path) -> None:
    text = """\
variables: {n: 0}
jobs:
  a: {run: x, files: {t: t.csv}, env: {A_1: x, my.name: y}, time: 1 s}
  each: {run: y, for-each: {items: [1], collect: "${{ jobs.each.files.part }}"}, files: {part: p}}
  b: {run: "cat ${{ jobs.a.files['t'] }} ${{ jobs.a.exit_code }} ${{ jobs.each.outputs[0] }}", if: "${{ 1 == 1 }}"}
  c: {steps: [{set: {n: 1}}, {receive: c, as: got}, {set: {got.seen: true}}, {reply: c}]}
"""
    read_flow(text, tmp_path / "flow.yaml")
