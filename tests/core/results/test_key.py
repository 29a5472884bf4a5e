"""The key of a result: everything that it is made from, and nothing else."""

from typing import Any

import pytest
from msgspec.structs import replace

from mendflow.core.model.data import Publication
from mendflow.core.model.ids import ItemId
from mendflow.core.model.jobs import FunctionRef, JobSpec, Limits, Resources, RetryRule, Submission
from mendflow.core.model.values import FileRef
from mendflow.core.results.earlier_results import summary
from mendflow.core.results.result_key import base_of, differences, number_in, numbered, result_key


def kept(letter: str, name: str = "a") -> FileRef:
    return FileRef(sha256=letter * 64, bytes=1, name=name)


SPEC = JobSpec(
    item=ItemId("align[3]"),
    command="sort in.txt > out.txt",
    env={"LC_ALL": "C", "N": "1"},
    inputs={"in.txt": kept("a")},
    files={"out": "out.txt"},
)
CALL = JobSpec(
    item=ItemId("f"),
    function=FunctionRef(module="m", name="f", code=kept("a"), folder="/one", imports="x"),
    args=[1, {"a": [2]}],
    kwargs={"depth": 3},
)

HOW_IT_RUNS: list[dict[str, Any]] = [
    {"item": ItemId("other[17]"), "element": "s3.txt"},
    {"resources": Resources(cpus=4, memory_bytes=1, gpus=1, wall_ms=5, site="s", avoid_hosts=("h",))},
    {"limits": Limits(open_files=3)},
    {"priority": 7, "owner": "ada", "account": "ada"},
    {"expected_ms": 1, "retries": 4, "retry_wait_ms": 9},
    {
        "retry": (RetryRule(times=3),),
        "spent": (1,),
        "earlier_losses": 2,
        "earlier_attempts": 3,
        "unstaged": ("analyse.sh",),
    },
    {"submission": Submission.POLL, "stage_in": "sequence", "link_inputs": True, "cache": True, "domain": "south"},
    {"transfer": {"tries": 3}, "replicas": {"in.txt": ("http://one/a",)}},
    {"inputs": {"in.txt": kept("a", name="another name")}},
    {"env": {"N": "1", "LC_ALL": "C"}},
]
MADE_FROM: list[tuple[dict[str, Any], str]] = [
    ({"command": "sort -u in.txt > out.txt"}, "its command changed"),
    ({"shell": "sh"}, "its shell changed"),
    ({"env": {"LC_ALL": "C"}}, "its environment variables changed"),
    ({"inputs": {"in.txt": kept("b")}}, "its input in.txt has other content"),
    ({"inputs": {"in.txt": kept("a"), "b": kept("b")}}, "its inputs changed: b is new"),
    ({"inputs": {}}, "its inputs changed: in.txt is gone"),
    ({"inputs": {"in.txt": replace(kept("a"), executable=True)}}, "its input in.txt may be executed now"),
    ({"files": {"out": "sorted.txt"}}, "the files that it promises changed"),
    ({"publish": {"out": Publication(logical="/a")}}, "what it publishes changed"),
    ({"resources": Resources(machine="x86_64")}, "the system or machine that it needs changed"),
]
OF_CALLS: list[tuple[dict[str, Any], str]] = [
    ({"args": [1, {"a": [3]}]}, "its argument 2 changed"),
    ({"args": [1]}, "its argument 2 changed"),
    ({"args": [1.0, {"a": [2]}]}, ""),
    ({"kwargs": {"depth": None}}, "its argument depth changed"),
    ({"kwargs": {}}, "its argument depth changed"),
    ({"function": FunctionRef(module="m", name="g", code=kept("a"), imports="x")}, "it calls another function"),
    ({"function": FunctionRef(module="m", name="f", code=kept("b"), imports="x")}, "a changed"),
    ({"function": FunctionRef(module="m", name="f", code=kept("a"), imports="y")}, "its function or the code"),
]


@pytest.mark.parametrize("change", HOW_IT_RUNS, ids=str)
def test_how_a_job_is_run_and_where_it_stands_is_not_in_the_key(change: dict[str, Any]) -> None:  # DU-2
    other = replace(SPEC, **change)
    assert (result_key(other), differences(SPEC, other)) == (result_key(SPEC), [])


@pytest.mark.parametrize(("spec", "change", "told"), [(SPEC, *each) for each in MADE_FROM], ids=str)
def test_what_a_job_is_made_from_is_in_the_key_and_told(spec: JobSpec, change: dict[str, Any], told: str) -> None:
    # DU-2
    other = replace(spec, **change)
    assert result_key(other) != result_key(spec)
    assert differences(spec, other) == [told]


@pytest.mark.parametrize(("change", "told"), OF_CALLS, ids=str)
def test_a_function_is_known_by_its_code_and_arguments(change: dict[str, Any], told: str) -> None:  # DU-2
    other = replace(CALL, **change)
    assert result_key(other) != result_key(CALL)
    assert not told or differences(CALL, other)[0].startswith(told)


def test_where_the_code_of_a_function_lies_does_not_matter() -> None:  # DU-2
    assert CALL.function is not None
    assert result_key(replace(CALL, function=replace(CALL.function, folder="/two"))) == result_key(CALL)


OTHER_VALUES: dict[str, object] = {
    "command": "x",
    "env": {"A": "1"},
    "files": {"a": "b"},
    "args": [1],
    "kwargs": {"a": 1},
    "inputs": {"a": kept("a")},
    "replicas": {"a": ("http://a",)},
    "function": CALL.function,
    "publish": {"a": Publication(logical="/a")},
}


def test_a_field_that_says_how_a_job_is_run_has_to_be_listed_as_such() -> None:  # DU-2
    """Whoever adds a field to jobs gets it into the key, unless this list and the module say otherwise."""
    neutral = {name for change in HOW_IT_RUNS for name in change} - {"inputs", "env", "replicas"}
    for name in JobSpec.__struct_fields__:
        value = OTHER_VALUES.get(name, "other")
        if name not in neutral and name != "resources":
            assert result_key(replace(JobSpec(item=ItemId("i")), **{name: value})) != result_key(
                JobSpec(item=ItemId("i"))
            ), name


def test_the_second_job_made_from_the_same_has_a_key_of_its_own() -> None:  # DU-2
    key = result_key(SPEC)
    assert numbered(key, 1) == key
    again = numbered(key, 12)
    assert again != key
    assert (base_of(again), number_in(again), number_in(key)) == (key, 12, 1)


def test_many_changes_are_summed_up_in_a_line() -> None:  # DU-2
    many = {f"parts/{number}": kept("a") for number in range(20)}
    before, after = replace(SPEC, inputs=many), replace(SPEC, inputs=dict.fromkeys(many, kept("b")), command="x")
    assert summary(before, after) == (
        "its command changed; 20 inputs changed, the first: its input parts/0 has other content"
    )
    assert summary(before, before) == ""
