"""What distinguishes a case from its neighbour."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendflow.core.learning.context_trees import tests_from as conditions_from
from mendflow.core.model.values import Value
from mendflow.core.rules import candidates, differences, narrowed
from mendflow.core.rules.candidates import between
from tests.core.rules.trees import holds

HERE: dict[str, Value] = {
    "fault": {"type": "disk-full", "category": "execution", "message": "write /scratch/x7: No space left on device"},
    "job": {
        "memory_bytes": 8_000_000_000,
        "attempts": 3,
        "exit_code": 28,
        "site": "leeds",
        "pilot": "p-77",
        "hosts": ["n1"],
    },
    "case": {"id": "c-1", "data": {"samples": 900, "max-size": 3, "kind": "wgs"}},
    "now": 3,
}
THERE: dict[str, Value] = {
    "fault": {"type": "out-of-memory", "category": "execution", "message": "write: memory limit"},
    "job": {
        "memory_bytes": 2_000_000_000,
        "attempts": 1,
        "exit_code": 137,
        "site": "leeds",
        "pilot": "p-3",
        "hosts": [],
    },
    "case": {"id": "c-2", "data": {"samples": 20, "kind": "wgs"}},
    "now": 4,
}


def test_candidates_are_equalities_thresholds_and_words_the_most_telling_first() -> None:  # EX-7
    found = [each.condition for each in candidates(HERE, THERE)]
    assert found[:2] == ['fault.type == "disk-full"', "job.exit_code == 28"]
    assert {"job.attempts >= 3", "case.data.samples >= 900", "case.data['max-size'] == 3", '"n1" in job.hosts'} <= set(
        found
    )
    assert 'fault.message.contains("No space left on")' in found


def test_what_is_the_same_or_fleeting_is_not_among_them() -> None:
    text = " ".join(each.condition for each in candidates(HERE, THERE))
    assert not [word for word in ("category", "site", "c-1", "p-77", "now", "kind") if word in text]


def test_each_says_what_is_here_and_there() -> None:
    first = candidates(HERE, THERE)[0]
    assert (first.path, first.here, first.there) == ("fault.type", "disk-full", "out-of-memory")


def test_without_a_neighbour_the_telling_facts_of_the_case_are_shown() -> None:
    found = [each.condition for each in candidates(HERE, None)]
    assert 'fault.type == "disk-full"' in found[:3]


VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(10**6), 10**6),
        st.floats(-1e6, 1e6),
        st.text("ab \n'\"\\é$", max_size=8),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(["type", "in", "x-y", "z'"]), inner)
    ),
    max_leaves=8,
)
CONTEXTS = st.dictionaries(st.sampled_from(["fault", "job", "case"]), VALUES)


@given(here=CONTEXTS, there=CONTEXTS)
def test_every_candidate_holds_here_and_not_there(here: dict[str, Value], there: dict[str, Value]) -> None:  # EX-7
    for each in candidates(here, there):
        assert holds(each.condition, here)
        assert not holds(each.condition, there)


@pytest.mark.parametrize(
    ("low", "high", "found"),
    [(1, 3, 3), (20, 900, 900), (2.1, 2.4, 2.4), (2.14, 2.69, 2.4), (0, 1, 1), (1234, 1300, 1300)],
)
def test_a_threshold_is_a_round_number_between(low: float, high: float, found: float) -> None:
    assert between(low, high) == found


@given(st.floats(-1e9, 1e9), st.floats(-1e9, 1e9))
def test_a_threshold_is_above_the_one_and_not_above_the_other(a: float, b: float) -> None:
    low, high = sorted((a, b))
    if low < high:
        assert low < between(low, high) <= high


def test_ex_7_every_value_that_differs_is_shown_the_most_telling_first_with_conditions_to_paste() -> None:
    found = differences(HERE, THERE)
    assert [(each.path, each.here, each.there, each.conditions) for each in found[:2]] == [
        ("fault.type", "disk-full", "out-of-memory", ['fault.type == "disk-full"']),
        ("job.exit_code", 28, 137, ["job.exit_code == 28"]),
    ]
    by_path = {each.path: each for each in found}
    assert by_path["case.data['max-size']"].missing == "there"
    assert not {"fault.category", "job.site", "case.data.kind"} & by_path.keys(), "what is the same is left out"
    for each in found:
        for condition in each.conditions:
            assert (holds(condition, HERE), holds(condition, THERE)) == (True, False), condition


def test_ex_7_what_only_the_other_case_has_is_a_difference_too() -> None:
    here, there = {"job": {"site": "leeds"}}, {"job": {"site": "leeds", "domain": "york"}}
    [found] = differences(here, there)
    assert (found.path, found.missing, found.conditions) == ("job.domain", "here", ["!has(job.domain)"])


@pytest.mark.parametrize(
    ("condition", "whole"),
    [
        ("true", "job.exit_code == 28"),
        ("job.attempts > 2", "job.attempts > 2 && job.exit_code == 28"),
        ("job.attempts > 2 || now > 1", "(job.attempts > 2 || now > 1) && job.exit_code == 28"),
        ("[1].exists(i, i == 1)", "([1].exists(i, i == 1)) && job.exit_code == 28"),
    ],
)
def test_ex_7_a_refused_condition_is_offered_again_narrowed(condition: str, whole: str) -> None:
    assert narrowed(condition, "job.exit_code == 28") == whole
    assert holds(whole, HERE)
    assert not holds(whole, THERE)


LOOPED: dict[str, Value] = {
    "fault": {"message": "it ended with exit code 1; its last line: reading the table of dessau"},
    "job": {"element": "dessau.csv", "command": "read dessau.csv --deep", "memory_bytes": 8_000_000},
    "case": {"data": {"index": 3, "file": {"$file": "a" * 64, "name": "dessau.csv", "stem": "dessau"}, "nights": 4}},
}
OTHER: dict[str, Value] = {
    "fault": {"message": "it was ended by signal 9"},
    "job": {"element": "halle.csv", "command": "read halle.csv", "memory_bytes": 9_000_000},
    "case": {"data": {"index": 7, "file": {"$file": "b" * 64, "name": "halle.csv", "stem": "halle"}, "nights": 9}},
}


def test_what_is_one_items_own_comes_last_and_what_mendflow_writes_not_at_all() -> None:  # EX-7
    found = [each.condition for each in candidates(LOOPED, OTHER)]
    assert 'fault.message.contains("reading the table of")' in found
    assert not [each for each in found if "last line" in each or "ended with" in each]
    own = [each for each in found if "dessau" in each or "index" in each]
    assert "case.data.index < 7" in own and 'job.element == "dessau.csv"' in own
    assert found[-len(own) :] == own and "case.data.nights < 9" in found[: -len(own)]


def test_no_learned_test_names_the_element_of_a_loop() -> None:  # EX-7
    made = conditions_from([LOOPED], [LOOPED, OTHER])
    assert "job.memory_bytes < 9000000" in made
    assert not [each for each in made if "dessau" in each or "index" in each]
