"""How often a job is tried again, as Python says it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from mendflow.core.model.jobs import RetryRule
from mendflow.core.model.units import DURATION_EXAMPLES, duration_ms
from mendflow.formats.python.problems import bad_flow
from mendflow.formats.retry_causes import cause_flaw
from mendflow.formats.spelling import nearest_word

Cause = int | str | type[BaseException]


@dataclass(frozen=True, init=False)
class Retry:
    """Try again so many times after a failure, and no more. `wait` comes before each, `factor` times as long as the one
    before; `on` are exit codes, `memory`, `time`, names of faults, or exceptions: all failures of the job's own unless
    given."""

    times: int
    wait: str = "0 s"
    factor: float = 2.0
    on: Cause | Sequence[Cause] = ()

    def __init__(
        self, times: int, wait: str = "0 s", factor: float = 2.0, on: Cause | Sequence[Cause] = (), **others: Any
    ) -> None:
        for name, value in (("times", times), ("wait", wait), ("factor", factor), ("on", on)):
            object.__setattr__(self, name, value)
        if others:
            raise bad_flow(*_told_of(next(iter(others))))
        causes_of(self)


_OPTIONS: Final = ("times", "wait", "factor", "on")
_FORM: Final = 'Retry(4, wait="1 s", factor=2, on=75)'
_ELSEWHERE: Final = {
    **dict.fromkeys(("delay", "retry_delay", "interval", "seconds", "wait_seconds", "initial", "min_wait"), "wait"),
    **dict.fromkeys(("backoff", "multiplier", "exponential", "growth", "base"), "factor"),
    **dict.fromkeys(("exit_code", "exit_codes", "codes", "exceptions", "when", "retry_on", "causes", "cause"), "on"),
    **dict.fromkeys(("max_attempts", "attempts", "max_retries", "retries", "tries", "count", "max", "limit"), "times"),
}
"""What other tools call the parts of a Retry, and what they are called here."""


def _told_of(word: str) -> tuple[str, str]:
    ours = _ELSEWHERE.get(word, "")
    if not ours:
        return f"Retry has no `{word}`; it is said as {_FORM}", nearest_word(word, _OPTIONS)
    return f"Retry has no `{word}`; that is `{ours}`, as in {_FORM}", ""


def retry_fields(given: Any) -> dict[str, Any]:
    """The fields of the model's job for a number, a Retry or a list of these. Nothing said and 0 are not the same."""
    if given is None:
        return {}
    if isinstance(given, int) and not isinstance(given, bool):
        if given < 0:
            raise bad_flow(f"retries is a whole number from 0 on, not {given}")
        return {"retries": given} if given else {"retry": (RetryRule(times=0),)}
    rules = list(given) if isinstance(given, (list, tuple)) else [given]
    if not rules or not all(isinstance(each, Retry) for each in rules):
        raise bad_flow(
            'retries is a whole number from 0 on, Retry(4, wait="1 s", on=75), or a list of these, not '
            f"{given!r:.80}{number_error(given)}"
        )
    if any(not causes_of(each) for each in rules[:-1]):
        raise bad_flow("a Retry without `on` takes all failures; it must be the last of the list")
    return {"retry": tuple(map(rule_of, rules))}


def number_error(given: Any) -> str:
    """What is said to somebody who lists the waits."""
    if not isinstance(given, (list, tuple)) or not all(isinstance(each, (int, float)) for each in given):
        return ""
    return f'; waits that grow are Retry({len(given)}, wait="1 s", factor=2)'


def rule_of(retry: Retry) -> RetryRule:
    if not isinstance(retry.times, int) or isinstance(retry.times, bool) or retry.times < 0:
        raise bad_flow(f"Retry: times is a whole number from 0 on, not {retry.times!r:.80}")
    if not isinstance(retry.factor, (int, float)) or isinstance(retry.factor, bool) or retry.factor < 1:
        raise bad_flow(f"Retry: factor is a number from 1 on, not {retry.factor!r:.80}")
    wait = duration_ms(retry.wait) if isinstance(retry.wait, str) else None
    if wait is None:
        raise bad_flow(f"Retry: wait is a duration such as {DURATION_EXAMPLES}, not {retry.wait!r:.80}")
    return RetryRule(times=retry.times, wait_ms=wait, factor=float(retry.factor), on=causes_of(retry))


def causes_of(retry: Retry) -> tuple[str, ...]:
    listed = retry.on if isinstance(retry.on, (list, tuple)) else [retry.on]
    return tuple(map(cause_name, listed))


def cause_name(cause: Any) -> str:
    if isinstance(cause, type) and issubclass(cause, BaseException):
        return cause.__name__
    if not isinstance(cause, (int, str)):
        raise bad_flow(f'Retry: on is an exit code, "memory", "time" or an exception, not {cause!r:.80}')
    if flaw := cause_flaw(cause, repr(cause)):
        raise bad_flow(f"Retry: {flaw.message}", flaw.suggestion)
    return str(cause)
