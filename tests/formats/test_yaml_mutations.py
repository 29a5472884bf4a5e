"""Whatever is done to a flow file, reading it gives a flow or a BadFlow, and nothing else."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendflow.core.engine.plan import compile_flow
from mendflow.core.model.errors import BadFlow
from mendflow.formats.yaml import read_flow
from mendflow.formats.yaml.flow_keys import COMMON, FLOW, FOR_EACH, IN_JOBS, JOB, KINDS

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.yaml"))
TEXTS = [path.read_text() for path in EXAMPLES]
BITS = [
    "${{",
    "}}",
    "jobs.a",
    ": ",
    "\n",
    "  ",
    "- ",
    "{",
    "}",
    "[",
    "]",
    "'",
    '"',
    "&a",
    "*a",
    "<<: ",
    "!!x",
    "|",
    "\t",
    "é",
    "\0",
]
KEYS = sorted({*FLOW, *COMMON, *IN_JOBS, *JOB, *FOR_EACH, *KINDS, "name", "do", "as", "with", "role", "catch"})


def attempt(text: str) -> None:
    """A flow that is taken must also be one that the engine can run."""
    try:
        flow = read_flow(text, EXAMPLES[0].parent / "mutated.yaml")
    except BadFlow as error:
        assert error.problems
        assert all(str(problem) for problem in error.problems)
        return
    compile_flow(flow)


@given(st.data())
def test_broken_texts_are_refused_and_no_more(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(TEXTS))
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        end = min(len(text), start + data.draw(st.integers(0, 12)))
        text = text[:start] + data.draw(st.sampled_from(BITS) | st.sampled_from(KEYS)) + text[end:]
    attempt(text)


WORDS = ["x", "a", "b", "true", "1 > 0", "5 s", "2 GB", "a.py:f", "sub.yaml"]
TEMPLATES = ["${{ jobs.a.outputs }}", "${{ item }}", "${{ 1 +", "${{ jobs.b.files.f }}-${{ index }}"]
SCALARS = st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from([*WORDS, *TEMPLATES])


def nested(children: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.lists(children, max_size=3) | st.dictionaries(st.sampled_from([*KEYS, "a", "b"]), children, max_size=4)


def written(value: object) -> str:
    """Plain data as YAML in its flow form."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {written(part)}" for key, part in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(written, value)) + "]"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return f"'{value}'" if isinstance(value, str) else str(value)


@given(st.dictionaries(st.sampled_from(["a", "b", "c"]), st.recursive(SCALARS, nested, max_leaves=25), min_size=1))
def test_any_structure_of_known_keys_is_a_flow_or_refused(jobs: dict[str, object]) -> None:
    attempt("jobs: " + written(jobs) + "\n")
    attempt("steps: " + written(list(jobs.values())) + "\n")


@pytest.mark.parametrize("text", TEXTS, ids=[path.name for path in EXAMPLES])
def test_a_file_that_was_cut_off_is_refused_and_no_more(text: str) -> None:
    for end in range(0, len(text), 7):
        attempt(text[:end])
