"""Rules whose conditions err: the decision tells of each, and a rule that errs again and again becomes an alert.

An error counts as not held, so a rule with a misspelt path would be silent for ever. The counts are in memory, of this
server and since its start: a rule that errs does so soon again."""

from collections import Counter
from collections.abc import Iterable
from typing import Final

from mendflow.core.model.repair import RuleError
from mendflow.core.model.rules import rule_text
from mendflow.services.base.alerts import AlertFinding, ProblemFound
from mendflow.services.base.hub import Hub

ERRORS_ALERTED: Final = 3
"""After how many errors of one version of a rule an alert is raised."""
RULES_COUNTED_MAX: Final = 10_000


class RuleErrorCounts:
    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._counts: Counter[tuple[str, int, str, str, int]] = Counter()

    def add(self, errors: Iterable[RuleError]) -> None:
        for error in errors:
            if len(self._counts) >= RULES_COUNTED_MAX:
                self._counts.clear()
            key = (error.rules, error.version, error.type.value, error.task, error.rule)
            self._counts[key] += 1
            if self._counts[key] == ERRORS_ALERTED:
                self._hub.publish(ProblemFound(_finding(error)))


def error_text(errors: Iterable[RuleError]) -> str:
    """What a decision notes of rules that erred."""
    return "; ".join(
        f"{rule_text(each.rules, each.rule)} erred and counted as not held: {each.error}" for each in errors
    )


def _finding(error: RuleError) -> AlertFinding:
    where = f"{error.rules}/{error.type.value}/{error.task or '-'}/{error.rule}"
    return AlertFinding(
        kind="rule-errs",
        subject=where,
        episode=str(error.version),
        sentence=(
            f"{rule_text(error.rules, error.rule)} for {error.type.value}{f' of {error.task!r}' if error.task else ''}"
            f" has erred {ERRORS_ALERTED} times, and counts as not held: {error.error}; `mendflow rules show"
            f" '{error.rules}'` shows it, `has(...)` asks first whether a value is there"
        ),
    )
