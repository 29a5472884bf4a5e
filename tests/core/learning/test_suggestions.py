"""Which rule is suggested by which past."""

from typing import Any

import pytest

from mendflow.core.learning.context_trees import ContextSample, grow_tree, holds_in
from mendflow.core.learning.exlet_changes import GUARDS, change_of_exlet
from mendflow.core.learning.group_statistics import estimate_retry, merge_groups
from mendflow.core.learning.repair_suggestions import common_phrase, other_contexts
from mendflow.core.learning.suggestions import suggestions
from mendflow.core.learning.usage import PlaceCount
from mendflow.core.model.repair import Conclusion
from mendflow.core.model.rules import DEFAULT_RULES, RuleSet
from mendflow.core.rules import Draft, add_rule
from tests.core.learning.failures import ABORT, EXLETS, adopted, failure_of, groups_of, history_of

MEMORY: dict[str, Any] = {"category": "memory", "name": "memoryLimit", "message": "it used 3 GB", "exit_code": None}


@pytest.mark.parametrize(
    ("exlet", "change"),
    [
        ("try-again", "nothing"),
        ("more-memory", "memory"),
        ("more-time", "time"),
        ("elsewhere", "host"),
        ("another-replica", "replica"),
        ("again", "files"),
        ("ask-again", "poll"),
        ("another-domain", "domain"),
        ("later", "wait"),
        ("give-up", "unknown"),
        ("begin-again", "unknown"),
        ("never-helped", "unknown"),
    ],
)
def test_what_an_exlet_changes_is_read_from_its_steps(exlet: str, change: str) -> None:
    assert change_of_exlet(EXLETS[exlet]) == change


def test_failures_that_nobody_took_up_get_the_exlet_that_answers_them() -> None:
    # LE-1 FM-13
    past = [failure_of(number, **MEMORY) for number in range(3)]
    [found] = suggestions(history_of(past))
    assert (found.kind, found.rules, found.exlet) == ("repair", "night", "more-memory")
    assert all(holds_in(found.condition, each.context) for each in past)
    assert not holds_in(found.condition, failure_of(9, **MEMORY, generation=4).context), "it does not go on for ever"
    assert not list(suggestions(history_of(past[:2]))), "twice is not often enough"
    assert found.sentence == "nobody took up 3 failures of this cause; more-memory was not tried for it yet"
    once = failure_of(9, **MEMORY, outcome="helped", exlet="more-memory", by_hand=True)
    [found] = suggestions(history_of([*past, once]))
    assert found.sentence.endswith("; more-memory helped 1 of 1 times")


def test_a_rule_of_a_flow_is_told_apart_from_failures_of_its_own_project() -> None:
    past = [failure_of(number, **MEMORY) for number in range(3)]
    near, far = failure_of(4, flow="noon", host="bee"), failure_of(5, flow="far", host="cat")
    far.project = "another"
    history = history_of([*past, near, far])
    group = next(each for each in history.groups if each.category == "memory")
    assert other_contexts(history, group, "night") == [near.context]
    assert other_contexts(history, group, DEFAULT_RULES) == [near.context, far.context]


def test_a_job_that_fails_by_itself_is_not_run_again_unless_that_has_helped() -> None:
    assert not list(suggestions(history_of([failure_of(number) for number in range(9)])))
    mended = [failure_of(number, outcome="helped", exlet="try-again", by_hand=True) for number in range(2)]
    [found] = suggestions(history_of(mended))
    assert (found.kind, found.exlet, found.sure) == ("by-hand", "try-again", (2, 2))
    assert 'fault.message.contains("no licence left")' in found.condition


def test_a_repair_by_hand_that_fails_as_often_as_it_helps_is_not_proposed() -> None:
    mended = [failure_of(n, outcome="helped", exlet="try-again", by_hand=True) for n in range(3)]
    mended += [failure_of(n, outcome="failed", exlet="try-again", by_hand=True) for n in range(10, 13)]
    assert not list(suggestions(history_of(mended)))


def test_what_failed_for_a_cause_is_not_proposed_for_it_again() -> None:
    network: dict[str, Any] = {"category": "network", "name": "unreachable", "message": "no answer", "exit_code": None}
    past = [failure_of(n, **network) for n in range(3)]
    assert [each.exlet for each in suggestions(history_of(past))] == ["later"]
    past += [failure_of(n, **network, outcome="failed", exlet="later", by_hand=True) for n in range(10, 14)]
    assert not list(suggestions(history_of(past)))


def _in_force(exlet: str, category: str = "memory") -> tuple[dict[str, RuleSet], Conclusion]:
    draft = Draft(condition=f'fault.category == "{category}"', exlet=exlet)
    rules = add_rule(RuleSet(name=DEFAULT_RULES, exlets=EXLETS), ABORT, "*", None, draft)
    said = Conclusion(rules=DEFAULT_RULES, version=1, type=ABORT, task="*", rule=rules.rule, exlet=exlet)
    return {DEFAULT_RULES: rules.rule_set}, said


def test_a_rule_that_keeps_failing_is_replaced_by_what_answers_the_cause() -> None:
    sets, said = _in_force("try-again")
    past = [failure_of(n, **MEMORY, outcome="failed", exlet="try-again", conclusion=said) for n in range(6)]
    [found] = suggestions(history_of(past, sets))
    assert (found.kind, found.exlet, found.rule) == ("stop", "more-memory", said.rule)
    grown = {DEFAULT_RULES: adopted(sets, found, past[0])}
    assert not list(suggestions(history_of(past, grown))), "it is taken up now"


def test_a_rule_that_helps_in_general_gets_an_exception_where_something_else_is_possible_and_it_never_helps() -> None:
    refused: dict[str, Any] = {"category": "refused", "name": "refused", "message": "it is closed", "exit_code": None}
    sets, said = _in_force("later", "refused")
    past = [failure_of(n, **refused, outcome="helped", exlet="later", conclusion=said) for n in range(12)]
    there: dict[str, Any] = {**refused, "domains": ["far"], "exlet": "later", "conclusion": said}
    past += [failure_of(n, **there, outcome="failed") for n in range(20, 26)]
    [found] = suggestions(history_of(past, sets))
    assert (found.kind, change_of_exlet(EXLETS[found.exlet]), found.rule) == ("stop", "domain", said.rule)
    assert not any(holds_in(found.condition, each.context) for each in past[:12])
    grown = {DEFAULT_RULES: adopted(sets, found, past[-1])}
    assert not list(suggestions(history_of(past, grown))), "it is taken up now"
    mixed = [*past, *(failure_of(n, **there, outcome="helped") for n in range(30, 36))]
    assert not list(suggestions(history_of(mixed, sets))), "it helps there as well"


def test_a_rule_that_never_helped_and_has_no_better_is_to_be_retired() -> None:
    sets, said = _in_force("more-memory")
    past = [failure_of(n, **MEMORY, outcome="failed", exlet="more-memory", conclusion=said) for n in range(6)]
    [found] = suggestions(history_of(past, sets))
    assert (found.kind, found.rules, found.rule, found.sure) == ("retire", DEFAULT_RULES, said.rule, (0, 6))


def test_a_first_wait_that_never_helps_where_the_second_does_is_too_short() -> None:
    sets, said = _in_force("later")
    past = [failure_of(n, **MEMORY, outcome="failed", exlet="later", conclusion=said) for n in range(6)]
    past += [
        failure_of(n, **MEMORY, outcome="helped", exlet="later", conclusion=said, level=1, generation=2)
        for n in range(10, 16)
    ]
    found = [each for each in suggestions(history_of(past, sets)) if each.kind == "wait"]
    assert [each.exlet for each in found] == ["later-2"]
    sets[found[0].rules] = adopted(sets, found[0], past[0])
    again = [each for each in suggestions(history_of(past, sets)) if each.kind == "wait"]
    assert not again, "what the rules conclude by now is not proposed again"


def test_a_host_that_fails_more_than_all_others_is_avoided() -> None:
    hosts = {"ant": PlaceCount(20, 15), "bee": PlaceCount(100, 2), "elk": PlaceCount(80, 1)}
    past = [failure_of(n, host="ant") for n in range(15)] + [failure_of(90, host="bee")]
    found = [each for each in suggestions(history_of(past, hosts=hosts)) if each.kind == "avoid"]
    assert [(each.place, each.exlet, each.sure) for each in found] == [("host ant", "elsewhere", (15, 20))]
    assert not holds_in(found[0].condition, past[-1].context)


def test_a_tree_finds_the_path_that_tells_failures_apart() -> None:
    here = [failure_of(n, domains=["far"]).context for n in range(5)]
    there = [failure_of(n).context for n in range(10, 15)]
    tree = grow_tree([*(ContextSample(each, True) for each in here), *(ContextSample(each, False) for each in there)])
    assert tree.test == "size(capacity.domains) > 0"
    assert [(leaf.wanted, leaf.others) for leaf in tree.leaves()] == [(5, 0), (0, 5)]


def test_no_condition_has_the_value_of_a_variable_in_it() -> None:
    # the environment of a job may hold secrets
    contexts = [failure_of(n).context for n in range(10)]
    for number, context in enumerate(contexts):
        context["item"]["data"] = {"TOKEN": "hush" if number < 5 else "other"}
    samples = [ContextSample(each, number < 5) for number, each in enumerate(contexts)]
    assert all("hush" not in leaf.condition for leaf in grow_tree(samples).leaves())


def test_counts_of_two_servers_add_up() -> None:
    past = [failure_of(n, outcome="helped" if n % 3 else "failed", exlet="later", by_hand=True) for n in range(20)]
    [one], [other], [whole] = groups_of(past[:7]), groups_of(past[7:]), groups_of(past)
    merge_groups(one, other)
    assert one == whole


def test_the_same_again_is_estimated_from_the_flow_and_from_the_cause_elsewhere() -> None:
    # LE-1
    past = [failure_of(n, outcome="failed", exlet="later", by_hand=True) for n in range(20)]
    [group] = groups_of(past)
    found = estimate_retry(group, "night")
    assert (found.tries, found.helped) == (20, 0)
    assert found.success < 0.05
    assert estimate_retry(group, "day").tries == 0
    assert found.success < estimate_retry(group, "day").success < 0.5 == estimate_retry(None, "day").success


@pytest.mark.parametrize("change", GUARDS)
def test_every_guard_bounds_how_often(change: Any) -> None:
    assert "job.generation" in GUARDS[change] or "history.case.of_task" in GUARDS[change]


def test_a_phrase_is_of_the_program_and_not_of_how_mendflow_tells_of_its_end() -> None:  # EX-7
    told = "it ended with exit code 1; its last line: reading the table of "
    assert common_phrase(f"{told}<value> [exit code 1]", [f"{told}dessau", f"{told}halle"]) == "reading the table of"
    assert common_phrase("it ended with exit code 3", ["it ended with exit code 3"]) == "it ended with exit code 3"
