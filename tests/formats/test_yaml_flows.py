"""What a flow file becomes: the activities of the model."""  # FM-1, FM-2: control flow and jobs of the native format

from pathlib import Path

import pytest

from mendflow.core.engine.plan import compile_flow
from mendflow.core.model.expr import Expr
from mendflow.core.model.flow import (
    Assign,
    Branch,
    Call,
    Choose,
    Compensate,
    Copy,
    Empty,
    Exit,
    Flow,
    ForEach,
    Input,
    Invoke,
    JobActivity,
    LinkSource,
    Parallel,
    Pick,
    Receive,
    Reply,
    Rethrow,
    Scope,
    Sequence,
    Stage,
    Throw,
    Until,
    UserTask,
    Wait,
    While,
)
from mendflow.core.model.jobs import Limits, Submission
from mendflow.formats.yaml import load_flow
from tests.formats.conftest import Reader


def only(flow: Flow) -> object:
    """The one step of a flow."""
    assert isinstance(flow.body, Sequence)
    (step,) = flow.body.body
    compile_flow(flow)
    return step


def jobs_of(flow: Flow) -> dict[str, JobActivity]:
    assert isinstance(flow.body, Parallel)
    compile_flow(flow)
    return {each.name: each for each in flow.body.branches if isinstance(each, JobActivity)}


def test_three_commands_in_order_take_four_lines(read: Reader) -> None:
    flow = read("steps:\n  - ./fetch.sh\n  - ./count.sh\n  - ./tell.sh\n")
    assert flow.name == "flow"
    assert flow.body == Sequence(
        name="flow.steps",
        body=(
            JobActivity(name="step-1", command="./fetch.sh"),
            JobActivity(name="step-2", command="./count.sh"),
            JobActivity(name="step-3", command="./tell.sh"),
        ),
    )


def test_jobs_run_at_once_where_needs_allow(read: Reader) -> None:
    flow = read("jobs:\n  a: one\n  b: {run: two, needs: a}\n  c: {run: three, needs: [a, b]}\n")
    assert isinstance(flow.body, Parallel)
    assert flow.body.on_fault == "finish"
    assert flow.body.links == ("a->b", "a->c", "b->c")
    jobs = jobs_of(flow)
    assert jobs["a"].sources == (LinkSource("a->b"), LinkSource("a->c"))
    assert jobs["c"].targets == ("a->c", "b->c")
    assert jobs["c"].join == "all"


def test_using_a_result_is_needing_it(read: Reader) -> None:
    flow = read("jobs:\n  use: echo ${{ jobs.make-it.outputs.n }}\n  make-it: one\n")
    assert jobs_of(flow)["use"].targets == ("make-it->use",)


def test_a_step_inside_a_neighbour_makes_the_neighbour_needed(read: Reader) -> None:
    flow = read("jobs:\n  all: {steps: [{name: inner, run: one}]}\n  use: echo ${{ jobs.inner.outputs.n }}\n")
    assert jobs_of(flow)["use"].targets == ("all->use",)


def test_after_waits_but_asks_nothing(read: Reader) -> None:
    flow = read(
        "jobs:\n  a: one\n  b: two\n  c: {run: three, needs: a, after: b, if: '!has(jobs.b)'}\n"
        "  d: {run: x, after: a}\n"
    )
    jobs = jobs_of(flow)
    assert jobs["c"].targets == ("a->c", "b->c")
    assert jobs["c"].join == Expr("links['a->c']")
    assert jobs["c"].when == Expr("!has(jobs.b)")
    assert jobs["d"].join == Expr("true")


def test_everything_that_a_job_can_say(read: Reader, tmp_path: Path) -> None:
    (tmp_path / "given.csv").write_text("1")
    flow = read("""
env: {LANG: C, WHO: flow}
defaults: {retries: 1, owner: ann}
jobs:
  make: {run: one, files: {table: out/table.csv}}
  use:
    run: wc -l table.csv
    inputs: {table.csv: "${{ jobs.make.files.table }}", here.csv: given.csv, far.csv: "https://example.org/x"}
    env: {WHO: "${{ inputs.who }}", N: 3}
    cpus: 2
    memory: 2 GB
    disk: 1 GiB
    gpus: 1
    time: 10 min
    site: north
    limits: {open-files: 100, file-size: 1 MB, processes: 5}
    priority: -3
    expected: 90 s
    retries: 2
    retry-wait: 5 s
    submit: poll
    stage-in: sequence
inputs: {who: me}
""")
    use = jobs_of(flow)["use"]
    assert use.inputs == {
        "table.csv": "${{ jobs.make.files.table }}",
        "here.csv": "given.csv",
        "far.csv": "https://example.org/x",
    }  # FM-6: from given inputs and from producing jobs
    assert use.stage_in == "sequence"
    assert use.env == {"LANG": "C", "WHO": "${{ inputs.who }}", "N": "3"}
    assert (use.resources.cpus, use.resources.memory_bytes, use.resources.disk_bytes) == (2.0, 2_000_000_000, 1024**3)
    assert (use.resources.gpus, use.resources.wall_ms, use.resources.site) == (1, 600_000, "north")
    assert use.limits == Limits(open_files=100, file_bytes=1_000_000, processes=5)
    assert (use.priority, use.owner, use.expected_ms) == (-3, "ann", 90_000)
    assert (use.retries, use.retry_wait_ms, use.submission) == (2, 5000, Submission.POLL)
    assert jobs_of(flow)["make"].retries == 1
    assert flow.inputs == {"who": Input(type="string", default="me")}


def test_resources_may_be_expressions(read: Reader) -> None:
    flow = read("inputs: {n: 2}\nsteps:\n  - {run: x, cpus: '${{ inputs.n }}', memory: '${{ inputs.n * 1000000 }}'}\n")
    job = only(flow)
    assert isinstance(job, JobActivity)
    assert job.resources.cpus == "${{ inputs.n }}"
    assert job.resources.memory_bytes == "${{ inputs.n * 1000000 }}"


def test_a_list_of_inputs_keeps_the_paths(read: Reader, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.csv").write_text("1")
    job = only(read("steps:\n  - {run: wc, inputs: [data/a.csv]}\n"))
    assert isinstance(job, JobActivity)
    assert job.inputs == {"data/a.csv": "data/a.csv"}


def test_inputs_are_given_in_full_or_by_their_default(read: Reader) -> None:
    flow = read(
        "inputs:\n  a: {type: list, default: [1], description: some}\n  b: 3\n  c:\n  d: {type: file}\nsteps: [x]\n"
    )
    assert flow.inputs == {
        "a": Input(type="list", default=[1], description="some"),
        "b": Input(type="number", default=3, inferred=True),
        "c": Input(required=True),
        "d": Input(type="file", required=True),
    }


def test_a_loop_over_one_job_is_shown_under_its_name(read: Reader) -> None:
    flow = read(
        "inputs: {files: [a]}\n"
        "jobs:\n  count:\n    for-each: ${{ inputs.files }}\n    run: wc ${{ item }} ${{ index }}\n"
    )
    assert isinstance(flow.body, Parallel)
    assert flow.body.branches == (
        ForEach(
            name="count",
            items="${{ inputs.files }}",
            on_fault="finish",
            body=JobActivity(name="count.iteration", label="count", command="wc ${{ item }} ${{ index }}"),
            collect=Expr("jobs.`count.iteration`.outputs"),
        ),
    )
    compile_flow(flow)


def test_a_loop_has_options(read: Reader) -> None:
    loop = only(
        read("""
on-failure: stop
steps:
  - name: l
    for-each: {from: 1, to: "${{ 2 + 3 }}", as: n, in: sequence, max-parallel: 2, min-success: 3,
               on-failure: finish, collect: "${{ [jobs.l.files.f, n] }}"}
    run: echo ${{ n }} > f
    files: {f: f}
""")
    )
    assert isinstance(loop, ForEach)
    assert (loop.first, loop.last, loop.variable) == (1, Expr("2 + 3"), "n")
    assert (loop.parallel, loop.max_parallel, loop.on_fault) == (False, 2, "finish")
    assert (loop.min_success, loop.min_ended) == (3, None)
    assert loop.collect == Expr("[jobs.`l.iteration`.files.f, n]")


@pytest.mark.parametrize("written", ["jobs.l", "jobs['l']", 'jobs["l"]', "jobs.`l`"])
def test_collect_names_the_loop_in_every_spelling(read: Reader, written: str) -> None:
    loop = only(
        read(
            "steps:\n  - name: l\n    run: x\n    for-each:\n      items: [1]\n"
            f"      collect: >-\n        {written}.outputs.x + 1\n"
        )
    )
    assert isinstance(loop, ForEach)
    assert loop.collect == Expr("jobs.`l.iteration`.outputs.x + 1")


def test_a_loop_over_steps_gives_what_the_last_leaves(read: Reader) -> None:
    loop = only(read("steps:\n  - {name: l, for-each: [1, 2], steps: [one, {name: last, run: two}]}\n"))
    assert isinstance(loop, ForEach)
    assert isinstance(loop.body, Sequence)
    assert [each.name for each in loop.body.body] == ["l.1", "last"]
    assert loop.collect == Expr("has(jobs.`last`) ? jobs.`last`.outputs : null")


def test_choices_take_the_first_or_all_that_hold(read: Reader) -> None:
    text = (
        "steps:\n  - name: c\n    {}:\n      - {{when: '1 > 2', do: one}}\n"
        "      - {{when: true, do: [two, three]}}\n      - otherwise: {{exit: }}\n"
    )
    choose = only(read(text.format("choose")))
    assert choose == Choose(
        name="c",
        branches=(
            Branch(Expr("1 > 2"), JobActivity(name="c.1", command="one")),
            Branch(
                Expr("true"),
                Sequence(
                    name="c.2",
                    body=(JobActivity(name="c.2.1", command="two"), JobActivity(name="c.2.2", command="three")),
                ),
            ),
        ),
        otherwise=Exit(name="c.otherwise"),
    )
    many = only(read(text.format("choose-many")))
    assert isinstance(many, Choose)
    assert many.many


def test_loops_with_conditions(read: Reader) -> None:
    flow = read("""
variables: {n: 0}
steps:
  - while: n < 3
    do: {set: {n: "${{ n + 1 }}"}}
  - until: ${{ n == 0 }}
    do: [{set: {n: "${{ n - 1 }}"}}]
""")
    assert isinstance(flow.body, Sequence)
    first, body = flow.body.body
    assert first == Assign(name="flow.variables", copies=(Copy("n", 0),), first=True)
    assert isinstance(body, Sequence)
    loop, again = body.body
    assert loop == While(
        name="step-1",
        condition=Expr("n < 3"),
        body=Assign(name="step-1.do", copies=(Copy("n", "${{ n + 1 }}"),)),
    )
    assert isinstance(again, Until)
    compile_flow(flow)


def test_a_scope_has_variables_and_handlers(read: Reader) -> None:
    scope = only(
        read("""
steps:
  - name: s
    scope: [{name: work, run: 'x ${{ total }}'}, {set: {total.rows: 1}}]
    variables: {total: {rows: 0}}
    catch:
      - {fault: jobFailed, as: f, do: [{run: "echo ${{ f.message }}"}, {compensate: all}]}
      - do: {rethrow: true}
    undo: {compensate: s}
    on-terminate: echo ended
    on-message: {channel: news, as: m, match: 3, do: 'echo ${{ m }}'}
    on-alarm: [{after: 5 s, do: echo late}, {every: 1 min, do: echo still}]
    isolated: true
""")
    )
    assert isinstance(scope, Scope)
    assert scope.variables == {"total": {"rows": 0}}
    assert [each.fault for each in scope.catches] == ["jobFailed", None]
    assert scope.catches[0].variable == "f"
    assert scope.catches[1].body == Rethrow(name="s.catch-2")
    assert scope.compensation == Compensate(name="s.undo", scope="s")
    assert scope.termination == JobActivity(name="s.end", command="echo ended")
    assert (scope.messages[0].channel, scope.messages[0].variable, scope.messages[0].correlation) == ("news", "m", 3)
    assert [each.duration for each in scope.alarms] == [5000, None]
    assert [each.every for each in scope.alarms] == [None, 60_000]
    assert scope.isolated


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("empty:", Empty(name="x")),
        ("exit: true", Exit(name="x")),
        ("wait: 1h30m", Wait(name="x", duration=5_400_000)),
        ("wait: ${{ duration('5s') }}", Wait(name="x", duration=Expr("duration('5s')"))),
        ("wait-until: 2030-01-31T08:00Z", Wait(name="x", until=Expr("timestamp('2030-01-31T08:00:00Z')"))),
        ("throw: lost\n    message: gone\n    data: [1]", Throw(name="x", fault="lost", message="gone", data=[1])),
        (
            "receive: orders\n    as: order\n    match: 7",
            Receive(name="x", channel="orders", variable="order", correlation=7),
        ),
        (
            "invoke: bank\n    operation: pay\n    value: 3\n    as: answer",
            Invoke(name="x", partner="bank", operation="pay", value=3, variable="answer"),
        ),
        ("call: other\n    with: {n: 1}", Call(name="x", flow="other", inputs={"n": 1})),
        (
            "parallel: [one, two]",
            Parallel(
                name="x",
                on_fault="finish",
                branches=(JobActivity(name="x.1", command="one"), JobActivity(name="x.2", command="two")),
            ),
        ),
        (
            "user-task: Look\n    role: editor\n    deadline: 2 h\n    fields: {ok: yes or no}",
            UserTask(name="x", role="editor", title="Look", deadline_ms=7_200_000, fields={"ok": "yes or no"}),
        ),
    ],
)
def test_every_other_kind_of_step(read: Reader, text: str, wanted: object) -> None:
    assert only(read(f"steps:\n  - name: x\n    {text}\n")) == wanted


def test_a_reply_answers_what_was_received_and_variables_are_set(read: Reader) -> None:
    flow = read("""\
variables: {a: 0, b: {c: 0}}
steps:
  - receive: orders
  - {name: x, reply: orders, value: {ok: true}}
  - {name: y, set: {a: 1, b.c: "${{ 2 }}"}}
""")
    assert isinstance(flow.body, Sequence) and isinstance(flow.body.body[1], Sequence)
    assert flow.body.body[1].body[1:] == (
        Reply(name="x", channel="orders", value={"ok": True}),
        Assign(name="y", copies=(Copy("a", 1), Copy("b.c", "${{ 2 }}"))),
    )


def test_a_pick_waits_for_the_first_happening(read: Reader) -> None:
    pick = only(
        read(
            "steps:\n  - name: p\n    pick:\n"
            "      on-message: [{channel: go, do: one}]\n      on-alarm: {after: 5 s, do: two}\n"
        )
    )
    assert isinstance(pick, Pick)
    assert pick.messages[0].body == JobActivity(name="p.message-1", command="one")
    assert pick.alarms[0].duration == 5000


def test_files_are_staged_together_or_in_order(read: Reader, tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("1")
    step = only(read("steps:\n  - {name: s, stage: {a: a.csv, b: b.csv}, order: sequence}\n"))
    assert step == Stage(name="s", files={"a": "a.csv", "b": "b.csv"}, order="sequence")  # FM-6


def test_structure_nests_to_any_depth(read: Reader) -> None:  # FM-1
    text = "steps:\n"
    for depth in range(20):
        text += f"{'  ' * (2 * depth + 1)}- steps:\n"
    text += f"{'  ' * 41}- echo deep\n"
    compile_flow(read(text))


def test_jobs_nest_in_jobs(read: Reader) -> None:
    flow = read("jobs:\n  a:\n    jobs:\n      b: one\n      c: {run: two, needs: b}\n  d: {run: three, needs: a}\n")
    assert isinstance(flow.body, Parallel)
    compile_flow(flow)
    inner = flow.body.branches[0]
    assert isinstance(inner, Parallel)
    assert inner.links == ("b->c",)


def test_python_functions_are_named_by_file_or_module(read: Reader, tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "work.py").write_text("def count(path, n=1):\n    return n\n")
    flow = read(
        "steps:\n  - {name: a, python: 'lib/work.py:count', with: {path: x, n: 2}}\n"
        "  - {name: b, python: 'math:sqrt', with: [4.0]}\n"
    )
    assert isinstance(flow.body, Sequence)
    first, second = flow.body.body
    assert isinstance(first, JobActivity) and isinstance(second, JobActivity)
    assert first.function is not None and second.function is not None
    assert (first.function.module, first.function.name) == ("work", "count")
    assert first.function.folder == str((tmp_path / "lib").resolve())
    assert first.kwargs == {"path": "x", "n": 2}
    assert (second.function.module, second.args) == ("math", (4.0,))


def test_anchors_and_merges_save_typing(read: Reader) -> None:
    flow = read(
        "x-base: &base {cpus: 4, retries: 2}\n"
        "jobs:\n  a: {<<: *base, run: one, retries: 0}\n  b: {<<: [*base], run: two}\n"
    )
    jobs = jobs_of(flow)
    assert (jobs["a"].resources.cpus, jobs["a"].retries) == (4.0, 0)
    assert (jobs["b"].resources.cpus, jobs["b"].retries) == (4.0, 2)


def test_words_that_other_yaml_would_change_stay_as_they_are(read: Reader) -> None:
    flow = read("jobs:\n  on: {run: x, env: {A: no, B: 12:30, C: 010, D: 1_000, E: 2020-01-01, F: 1.10}}\n")
    env = jobs_of(flow)["on"].env
    assert env == {"A": "no", "B": "12:30", "C": "010", "D": "1_000", "E": "2020-01-01", "F": "1.10"}


def test_a_called_file_comes_along(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "inner.yaml").write_text("name: inner\ninputs: {n: }\nsteps: ['echo ${{ inputs.n }}']\n")
    (tmp_path / "outer.yaml").write_text(
        "jobs:\n  one: {call: sub/inner.yaml, with: {n: 1}}\n  two: {call: sub/inner.yaml, with: {n: 2}}\n"
    )
    flow = load_flow(tmp_path / "outer.yaml")
    assert flow.name == "outer"
    assert [each.name for each in flow.calls] == ["inner"]
    assert isinstance(flow.body, Parallel)
    assert flow.body.branches[0] == Call(name="one", flow="inner", inputs={"n": 1})
    assert flow.folder == str(tmp_path.resolve())
    compile_flow(flow)
