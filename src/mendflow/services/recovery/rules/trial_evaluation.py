"""What rules conclude about a context that somebody tries them out on."""

from mendflow.core.model.repair import ExceptionType
from mendflow.core.model.rule_views import EvaluatedRule, EvaluationView
from mendflow.core.model.rules import RuleSet
from mendflow.core.model.values import Value
from mendflow.core.rules import CompiledRules, context_lookup
from mendflow.core.rules.evaluation import holds_for_version


def evaluated(sets: list[RuleSet], type: ExceptionType, task: str, context: dict[str, Value]) -> EvaluationView:
    """The first conclusion of these sets, and how each came to what it says."""
    lookup, trail, others = context_lookup(context), list[EvaluatedRule](), 0
    trials = []
    for rules in map(CompiledRules, sets):
        tree = rules.tree_for(type, task)
        if tree is None or not holds_for_version(rules.rule_set, context):
            continue
        walked, verdict = rules.walk_and_judge(type, tree, lookup)
        known = rules.rule_set.trees[type][tree].rules
        trail += [
            EvaluatedRule(
                rules=rules.rule_set.name,
                task=tree,
                rule=each.rule,
                condition=known[each.rule].condition,
                held=each.held,
                values=each.values,
                error=each.error,
            )
            for each in walked.trail
        ]
        others += walked.others
        trials += verdict.trials
        if verdict.conclusion is not None:
            return EvaluationView(conclusion=verdict.conclusion, trail=trail, trials=trials, others=others)
    return EvaluationView(trail=trail, trials=trials, others=others)
