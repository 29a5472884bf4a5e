"""Exlets in YAML: each word becomes its primitive, and whatever is wrong is told with its place."""

from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from mendflow.core.engine import compile_flow
from mendflow.core.model.errors import BadFlow
from mendflow.core.model.flow import Call, Parallel, PrimitiveStep, Sequence
from mendflow.core.model.repair import Primitive
from mendflow.formats.schema import exlet_schema
from mendflow.formats.yaml.called_flows import FlowFileLoader
from mendflow.formats.yaml.document import MapNode, parse
from mendflow.formats.yaml.exlets import build_exlet, load_exlet, read_exlet
from mendflow.formats.yaml.reader import YamlReader
from tests.core.engine.world import Play

CONTEXT = {"job": {"memory_bytes": 100, "attempts": 2}, "case": {"data": {"venue": "hall"}}, "item": {"name": "a"}}
SCHEMA = jsonschema.Draft202012Validator(exlet_schema())


def orders(text: str) -> Play:
    flow = read_exlet(text, "mend.yaml")
    compile_flow(flow)
    return Play(flow, {"context": CONTEXT})


def only(text: str) -> dict[str, Any]:
    """The one order of an exlet with one step, without what is the same in all."""
    (order,) = orders(text).out.values()
    fields = {name: getattr(order, name) for name in order.__struct_fields__ if name not in ("serial", "item")}
    return {name: value for name, value in fields.items() if value or name == "do"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("- suspend:", {"do": "suspend", "target": "item"}),
        ("suspend", {"do": "suspend", "target": "item"}),
        ("- re-submit", {"do": "re-submit", "target": "item"}),
        ("re-submit", {"do": "re-submit", "target": "item"}),
        (
            "re-submit: {wait: 5 s, memory: 1 GB}",
            {"do": "re-submit", "target": "item", "settings": {"resources": {"memory_bytes": 10**9}, "wait_ms": 5000}},
        ),
        (
            "- re-submit: {wait: '${{ backoff(duration(\"1s\"), job.attempts) }}'}",
            {"do": "re-submit", "target": "item", "settings": {"wait_ms": 4000}},
        ),
        (
            "- {re-submit: {wait: '${{ duration(\"1s\") * job.attempts }}'}}",
            {"do": "re-submit", "target": "item", "settings": {"wait_ms": 2000}},
        ),
        (
            "- retry-later: {mode: express}",
            {"do": "retry-later", "target": "item", "settings": {"level": 0, "mode": "express"}},
        ),
        ("- suspend: case", {"do": "suspend", "target": "case"}),
        ("- suspend: ancestors", {"do": "suspend", "target": "ancestors"}),
        ("- continue: all-cases", {"do": "continue", "target": "all-cases"}),
        ("- remove: item\n  item: other[1]", {"do": "remove", "target": "item", "about": "other[1]"}),
        ("remove: case", {"do": "remove", "target": "case"}),
        ("- restart:", {"do": "restart", "target": "item"}),
        ("- {restart: true, with: {n: 5}}", {"do": "restart", "target": "item", "settings": {"with": {"n": 5}}}),
        (
            "- force-complete:\n  outputs: {n: '${{ job.attempts }}'}",
            {"do": "force-complete", "target": "item", "settings": {"outputs": {"n": 2}}},
        ),
        (
            "- force-fail:\n  fault: late\n  message: it was ${{ item.name }}\n  throw: true",
            {
                "do": "force-fail",
                "target": "item",
                "settings": {"fault": "late", "message": "it was a", "throw": True},
            },
        ),
        ("- write: {venue: park}", {"do": "write", "target": "case", "settings": {"values": {"venue": "park"}}}),
        (
            "- write: {n: 1}\n  into: item",
            {"do": "write", "target": "item", "settings": {"values": {"n": 1}}},
        ),
        (
            "- re-submit:\n  memory: ${{ job.memory_bytes * 2 }}\n  time: 2 h\n  avoid: [n1]\n  domain: west\n"
            "  env: {A: b}\n  sources: {in: 'http://x'}\n  wait: 5 s",
            {
                "do": "re-submit",
                "target": "item",
                "settings": {
                    "resources": {"memory_bytes": 200, "wall_ms": 7_200_000},
                    "avoid_hosts": ["n1"],
                    "domain": "west",
                    "env": {"A": "b"},
                    "sources": {"in": "http://x"},
                    "wait_ms": 5000,
                },
            },
        ),
        (
            "- re-submit:\n  hosts: [n2, n3]\n  system: linux\n  machine: arm64",
            {
                "do": "re-submit",
                "target": "item",
                "settings": {"resources": {"hosts": ["n2", "n3"], "system": "linux", "machine": "arm64"}},
            },
        ),
        ("- re-submit:", {"do": "re-submit", "target": "item"}),
        ("- re-stage:", {"do": "re-stage", "target": "item", "settings": {"way": "same"}}),
        (
            "- re-stage: replica\n  sources: {in: other}",
            {"do": "re-stage", "target": "item", "settings": {"way": "replica", "sources": {"in": "other"}}},
        ),
        (
            "- re-stage: target\n  site: west",
            {"do": "re-stage", "target": "item", "settings": {"way": "target", "resources": {"site": "west"}}},
        ),
        (
            "- re-stage: parameters\n  parameters: {streams: 4}",
            {"do": "re-stage", "target": "item", "settings": {"way": "parameters", "parameters": {"streams": 4}}},
        ),
        ("- re-poll:\n  wait: 1 min", {"do": "re-poll", "target": "item", "settings": {"wait_ms": 60_000}}),
        ("- re-register:", {"do": "re-register", "target": "item"}),
        ("- retry-later:", {"do": "retry-later", "target": "item", "settings": {"level": 0}}),
        ("- retry-later: 2", {"do": "retry-later", "target": "item", "settings": {"level": 2}}),
        (
            "- retry-later: ${{ job.attempts }}\n  memory: 1 GB",
            {
                "do": "retry-later",
                "target": "item",
                "settings": {"level": 2, "resources": {"memory_bytes": 1_000_000_000}},
            },
        ),
        ("- unwind:", {"do": "unwind", "target": "item"}),
        (
            "- notify: look at ${{ item.name }}\n  to: ops",
            {"do": "notify", "target": "item", "settings": {"message": "look at a", "to": "ops"}},
        ),
    ],
)
def test_each_word_becomes_its_primitive(text: str, expected: dict[str, Any]) -> None:  # EX-2, FM-8
    assert only(text) == expected
    SCHEMA.validate(yaml.safe_load(text if text.startswith("-") else f"- {text}"))


def test_steps_run_one_after_another_and_can_be_anything_that_a_flow_has() -> None:
    play = orders("""\
- suspend: case
- if: job.attempts > 1
  run: clean-up ${{ item.name }}
- choose:
    - when: case.data.venue == 'hall'
      do: {notify: "moved"}
    - otherwise: [{remove: case}]
- continue: case
""")
    done = []
    while play.out:
        (order,) = play.out.values()
        done.append(getattr(order, "do", "") or play.command("step-2"))
        play.done(getattr(order, "item", "step-2"))
    assert done == ["suspend", "clean-up a", "notify", "continue"]


def test_a_root_that_the_context_does_not_have_is_null() -> None:
    assert only("- notify: \"${{ fault == null ? 'no fault' : fault.name }}\"")["settings"] == {"message": "no fault"}


def test_compensate_runs_one_worklet_and_writes_back_what_it_gave() -> None:  # EX-4
    play = orders("""\
- compensate: change-venue
  name: move
  with: {venue: "${{ case.data.venue }}"}
  write: all
- continue: case
""")
    (call,) = play.out.values()
    assert (getattr(call, "name", ""), getattr(call, "inputs", {})) == ("change-venue", {"venue": "hall"})
    play.done("move", outputs={"venue": "park"})
    (write,) = play.out.values()
    assert getattr(write, "settings", {}) == {"values": {"venue": "park"}}
    play.done("move.write-1")
    assert play.serial("step-2")


@pytest.mark.parametrize(
    ("steps", "name"),
    [
        ("- compensate: change-venue\n", "change-venue"),
        ("- compensate: {call: change-venue, name: move}\n", "move"),
        ("- {compensate: change-venue, name: move}\n", "move"),
        ("- notify: first\n  name: change-venue\n- compensate: change-venue\n", "step-2"),
    ],
)
def test_a_worklet_is_called_by_its_own_name_unless_it_or_its_step_is_given_one(steps: str, name: str) -> None:  # EX-4
    play = orders(steps)
    if name == "step-2":
        play.done("change-venue")
    (called,) = play.out.values()
    assert getattr(called, "item", "") == name


def test_what_the_only_worklet_of_a_step_leaves_is_called_by_the_step() -> None:  # EX-4
    play = orders("- {compensate: change-venue, name: move}\n- notify: '${{ jobs.move.outputs.venue }}'\n")
    play.done("move", outputs={"venue": "park"})
    (told,) = play.out.values()
    assert getattr(told, "settings", {}) == {"message": "park"}


def test_compensate_runs_several_worklets_at_once_and_the_next_step_waits_for_all() -> None:  # EX-3
    play = orders("""\
- compensate: [refund, {call: change-venue, name: move, with: {size: small}}]
  with: {size: large}
  write: {venue: "${{ jobs.move.outputs }}"}
  into: item
- continue: case
""")
    inputs = {getattr(each, "item", ""): getattr(each, "inputs", {}) for each in play.out.values()}
    assert inputs == {"refund": {"size": "large"}, "move": {"size": "small"}}
    play.done("refund")
    assert list(play.out) == [play.serial("move")]
    play.done("move", outputs="park")
    (write,) = play.out.values()
    assert (getattr(write, "target", ""), getattr(write, "settings", {})) == ("item", {"values": {"venue": "park"}})


def test_a_worklet_can_be_a_file_beside_it(tmp_path: Path) -> None:
    (tmp_path / "move.yaml").write_text("inputs: {size: }\nsteps: [x]\n")
    (tmp_path / "mend.yaml").write_text("steps: [{compensate: move.yaml, with: {size: 3}}]\n")
    flow = load_exlet(tmp_path / "mend.yaml")
    assert (flow.name, flow.exlet, [each.name for each in flow.calls]) == ("mend", True, ["move"])
    (tmp_path / "mend.yaml").write_text("steps: [{compensate: move.yaml}]\n")
    with pytest.raises(BadFlow, match="the flow `move` needs the input `size`"):
        load_exlet(tmp_path / "mend.yaml")


def test_a_map_can_say_more_of_an_exlet_than_its_steps() -> None:
    flow = read_exlet(
        "name: other\ndescription: more memory\nvariables: {twice: '${{ job.memory_bytes * 2 }}'}\n"
        "steps: [{re-submit: , memory: '${{ twice }}'}]\n",
        "mend.yaml",
    )
    assert (flow.name, flow.description) == ("other", "more memory")
    (order,) = Play(flow, {"context": CONTEXT}).out.values()
    assert getattr(order, "settings", {}) == {"resources": {"memory_bytes": 200}}


def test_several_exlets_of_one_file_do_not_see_each_other() -> None:
    text = "one: [{run: x, name: same}]\ntwo: [{run: 'echo ${{ jobs.same.outputs }}', name: same2}, {suspnd: case}]\n"
    root, _ = parse(text, "rules.yaml")
    assert isinstance(root, MapNode)
    reading = YamlReader("rules.yaml", text, Path.cwd())
    built = {
        name: build_exlet(reading, entry.value, name, FlowFileLoader(Path.cwd()))
        for name, entry in root.entries.items()
    }
    assert all(flow is not None and flow.exlet for flow in built.values())
    assert [str(each) for each in reading.problems] == [
        "rules.yaml:2:60: nothing says what this step does; give it one of `run`, `python`, `user-task`, `call`, "
        "`steps`, `choose`, ... (did you mean `suspend`?)",
        "rules.yaml:2:23: there is no job `same` in this flow (did you mean `same2`?)",
    ]


def test_more_roots_can_be_given_by_whoever_has_more() -> None:
    assert read_exlet("- notify: ${{ weather.rain }}", "mend.yaml", roots=["weather"])
    with pytest.raises(BadFlow, match="there is no variable `weather` here"):
        read_exlet("- notify: ${{ weather.rain }}", "mend.yaml")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("3", "1:1: an exlet is a list of steps, or a map with `steps:`, not the number 3"),
        ("[]", "1:1: a list of steps needs at least one step"),
        ("- suspnd: case", "1:3: nothing says what this step does.*did you mean `suspend`"),
        ("- suspend: cse", "1:12: one of item, case, all-cases, ancestors.*did you mean `case`"),
        ("- suspend: case\n  item: b", "2:3: `item` goes with `suspend: item`, not with case"),
        ("- re-submit:\n  memry: 3 GB", "2:3: a `re-submit` step has no key `memry` .did you mean `memory`"),
        ("- re-submit:\n  memory: 3", "2:11: a size .* is expected here; 3 lacks its unit"),
        ("- re-submit:\n  time: ${{ job.wall_ms * }}", "2:26: in the expression `job.wall_ms \\*`"),
        ("- notify:", "1:3: `notify` has no value"),
        ("- write: 3", "1:10: a map is expected here"),
        ("- compensate: []", "1:15: `compensate` needs at least one worklet"),
        ("- compensate: [{cal: x}]", "1:17: a worklet has no key `cal` .did you mean `call`"),
        ("- compensate: x\n  write: 3", "2:10: `all`, or a map of values, is expected here"),
        ("- run: x ${{ jb.x }}", "1:14: there is no variable `jb` here .did you mean `job`"),
        ("stps: []", "1:1: an exlet has no key `stps` .did you mean `steps`"),
        ("- retry-later: 0", "1:16: the number of a level, from 1 on"),
        ("- re-stage: elsewhere", "1:13: one of same, parameters, replica, target"),
        ("- suspend: case\n  continue: case", "2:3: a step does one thing; this has `suspend` and `continue`"),
        ("- call: nofile.yaml", "1:9: there is no flow file `nofile.yaml`"),
        ("- restart: item", "1:12: true, or nothing, is expected here"),
    ],
)
def test_what_is_wrong_is_told_with_its_place_and_what_was_meant(text: str, said: str) -> None:
    with pytest.raises(BadFlow, match=said):
        read_exlet(text, "mend.yaml")


def test_a_flow_file_has_no_primitives(tmp_path: Path) -> None:
    with pytest.raises(BadFlow, match="nothing says what this step does"):
        FlowFileLoader(tmp_path).read("steps: [{suspend: case}]", tmp_path / "flow.yaml", "flow.yaml")


def test_the_schema_of_exlets_knows_every_word() -> None:
    SCHEMA.check_schema(exlet_schema())
    properties = exlet_schema()["$defs"]["step"]["properties"]
    assert {str(each) for each in Primitive} | {"compensate"} <= set(properties)
    assert all(each.get("description") for each in properties.values())


@pytest.mark.parametrize("text", ["[]", "- {suspend: cse}", "- {re-submit: , memry: 1}", "{}", "- {write: 3}"])
def test_the_schema_of_exlets_rejects_what_the_parser_rejects(text: str) -> None:
    with pytest.raises(jsonschema.ValidationError):
        SCHEMA.validate(yaml.safe_load(text))
    with pytest.raises(BadFlow):
        read_exlet(text, "mend.yaml")


def test_worklets_stand_in_a_parallel_and_what_goes_back_after_it() -> None:
    flow = read_exlet("- compensate: [a, b]\n  write: all", "mend.yaml")
    assert isinstance(flow.body, Sequence)
    (step,) = flow.body.body
    assert isinstance(step, Sequence) and isinstance(step.body[0], Parallel)
    assert [type(each) for each in step.body[0].branches] == [Call, Call]
    assert [type(each) for each in step.body[1:]] == [PrimitiveStep, PrimitiveStep]
