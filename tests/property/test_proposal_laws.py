"""Whatever the past was: no adopted proposal changes what a cornerstone concludes."""

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from mendflow.core.learning.suggestions import suggestions
from mendflow.core.model.errors import RequestError
from mendflow.core.model.repair import Conclusion, Decision
from mendflow.core.model.rules import DEFAULT_RULES, RuleSet
from mendflow.core.rules import CompiledRules, CornerstoneConflict, Draft, add_rule, context_lookup, promote, retire
from tests.core.learning.failures import ABORT, EXLETS, adopted, failure_of, history_of

CAUSES: tuple[dict[str, Any], ...] = (
    {"category": "memory", "name": "memoryLimit", "message": "it used too much", "exit_code": None},
    {"category": "network", "name": "unreachable", "message": "no answer", "exit_code": None},
    {"category": "resource", "name": "diskFull", "message": "the disk is full", "exit_code": None},
    {"category": "job", "name": "exitCode", "message": "no licence left", "exit_code": 9},
    {"category": "job", "name": "exitCode", "message": "the table is locked", "exit_code": 9},
)
CONDITIONS = ('fault.category == "memory"', 'fault.name == "exitCode"', "job.generation == 1", 'job.host == "ant"')

failures = st.builds(
    lambda number, cause, **more: failure_of(number, **cause, **more),
    st.integers(0, 500),
    st.sampled_from(CAUSES),
    flow=st.sampled_from(["night", "day"]),
    host=st.sampled_from(["ant", "bee"]),
    generation=st.integers(1, 4),
    outcome=st.sampled_from(["unhandled", "unhandled", "helped", "failed"]),
    exlet=st.sampled_from(["later", "try-again", "elsewhere"]),
    by_hand=st.booleans(),
)
first_rules = st.lists(st.tuples(st.sampled_from(CONDITIONS), st.sampled_from(["later", "elsewhere", ""])), max_size=4)


def grown(decisions: list[Decision], wanted: list[tuple[str, str]]) -> dict[str, RuleSet]:
    """Rules that people have made before, each for one of the failures."""
    rules = RuleSet(name=DEFAULT_RULES, exlets=EXLETS)
    for (condition, exlet), decision in zip(wanted, decisions, strict=False):
        try:
            rules = add_rule(rules, ABORT, "*", decision.context, Draft(condition=condition, exlet=exlet)).rule_set
        except RequestError:
            continue
    return {DEFAULT_RULES: rules}


def concluded(sets: dict[str, RuleSet]) -> dict[tuple[str, str, int], str]:
    """What each cornerstone concludes, by its rule."""
    found = {}
    for name, rules in sets.items():
        compiled = CompiledRules(rules)
        for tree, known in rules.trees.get(ABORT, {}).items():
            for rule in known.rules.values():
                if rule.cornerstone is not None and not rule.passive:
                    decided = compiled.walk_tree(ABORT, tree, context_lookup(rule.cornerstone)).decided
                    found[name, tree, rule.id] = decided.rule.exlet if decided is not None else ""
    return found


def by_rules(decision: Decision, sets: dict[str, RuleSet]) -> Decision:
    """Repairs that no person made were made by the rules, if they would have."""
    said: Conclusion | None = None
    if decision.exlet and decision.conclusion is None:
        lookup = context_lookup(decision.context)
        said = CompiledRules(sets[DEFAULT_RULES]).judge(ABORT, decision.task, lookup).conclusion
    if said is None:
        return decision
    return msgspec.structs.replace(decision, conclusion=said, exlet=said.exlet)


@given(st.lists(failures, min_size=3, max_size=40), first_rules, st.booleans())
def test_no_adopted_proposal_changes_what_a_cornerstone_concludes(
    decisions: list[Decision], wanted: list[tuple[str, str]], on_trial_first: bool
) -> None:
    # LE-1
    sets = grown(decisions, wanted)
    decisions = [by_rules(each, sets) for each in decisions]
    history = history_of(decisions, sets)
    for said in suggestions(history):
        before, decision = concluded(sets), history.decisions[said.decision]
        try:
            if said.kind == "retire":
                assert said.rule is not None
                after = retire(sets[said.rules], said.type, said.task, said.rule)
            elif on_trial_first:
                trial = adopted(sets, said, decision, passive=True)
                assert concluded({**sets, said.rules: trial}) == before, "a rule on trial decides nothing"
                [rule] = [r for t in trial.trees[ABORT].values() for r in t.rules.values() if r.passive]
                [tree] = [
                    name for name, t in trial.trees[ABORT].items() if rule.id in t.rules and t.rules[rule.id].passive
                ]
                after = promote(trial, ABORT, tree, rule.id)
            else:
                after = adopted(sets, said, decision)
        except RequestError:
            continue
        sets[said.rules] = after
        now = concluded(sets)
        assert {key: now[key] for key in before if key in now} == {key: before[key] for key in before if key in now}
        assert said.kind == "retire" or before.keys() <= now.keys()


@given(
    st.lists(st.sampled_from(range(3)), min_size=2, max_size=3, unique=True),
    st.sampled_from(["true", 'fault.category != ""', "job.generation >= 1"]),
    st.integers(3, 6),
)
def test_a_proposal_that_has_become_too_wide_by_its_adoption_is_refused(
    causes: list[int], condition: str, count: int
) -> None:
    """All are made before the first is adopted, so that none knows the cornerstones of the others, and their conditions
    hold for those."""
    # LE-1
    decisions = [
        failure_of(10 * cause + number, **CAUSES[cause], flow="night") for cause in causes for number in range(count)
    ]
    history, sets, refused = history_of(decisions, {}), dict[str, RuleSet](), 0
    made = [msgspec.structs.replace(each, condition=condition) for each in suggestions(history)]
    for said in made:
        before = concluded(sets)
        try:
            sets[said.rules] = adopted(sets, said, history.decisions[said.decision])
        except CornerstoneConflict:
            refused += 1
            continue
        now = concluded(sets)
        assert {key: now[key] for key in before} == before
    assert len({each.exlet for each in made}) > 1 and refused, "there was something to refuse"
