"""Validates data sets, and describes them in words."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from mendflow.core.data.data_set import FILES_MAX, requested_inputs
from mendflow.core.expressions import ExpressionError, references
from mendflow.core.model.data_sets import DataSetSpec, Gathering
from mendflow.core.model.errors import InvalidRequest
from mendflow.lazy import lazy_pattern

NAME_RULE: Final = "use up to 100 letters, digits, and . _ -, the first a letter or a digit"
_NAME = lazy_pattern(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_PROVIDED = ("file", "files", "set", "batch")


def check_set_spec(wish: DataSetSpec) -> None:
    """Raises InvalidRequest for an invalid set."""
    every = [*set_flaws(wish), *(flaw for rule in wish.gatherings for flaw in rule_flaws(wish.name, rule))]
    if every:
        raise InvalidRequest("; ".join(every))


def set_flaws(wish: DataSetSpec) -> Iterator[str]:
    """What is wrong with a set except its gatherings, one sentence each."""
    yield from (flaw for name in (wish.name, *wish.after) if (flaw := name_flaw(name, "data set")))
    if wish.name in wish.after:
        yield f"data set {wish.name} cannot come after itself"
    names = [rule.name for rule in wish.gatherings]
    if doubled := next((name for name in names if names.count(name) > 1), ""):
        yield f"data set {wish.name} has two gatherings {doubled!r}; give each a name of its own"


def rule_flaws(data_set: str, rule: Gathering) -> Iterator[str]:
    """What is wrong with a gathering, one sentence each."""
    if flaw := name_flaw(rule.name, f"gathering of data set {data_set}"):
        yield flaw
    where = f"gathering {rule.name} of data set {data_set}"
    if not rule.flow:
        yield f"{where} names no flow"
    for name, number in (("count", rule.count), ("size_bytes", rule.size_bytes), ("wait_ms", rule.wait_ms)):
        if number < 0:
            yield f"{where}: {name} is {number}; give a number above 0, or leave it away"
    if rule.count > FILES_MAX:
        yield f"{where}: count is {rule.count}; at most {FILES_MAX:,} files are in one batch"
    try:
        unknown = references(requested_inputs(rule)) - set(_PROVIDED)
    except ExpressionError as error:
        yield f"{where}: {error.message}"
        return
    if unknown:
        yield f"{where}: its inputs ask for `{min(unknown)}`; known here are {', '.join(_PROVIDED)}"


def cycle_flaw(name: str, after: Mapping[str, Sequence[str]]) -> str:
    """Why a set could never close by itself: it depends on itself through others. Empty if it does not."""
    ways = {before: [name, before] for before in after.get(name, ())}
    ahead = list(ways)
    while ahead and name not in ways:
        here = ahead.pop()
        for before in after.get(here, ()):
            if before not in ways:
                ways[before] = [*ways[here], before]
                ahead.append(before)
    if name not in ways:
        return ""
    return f"data sets come after each other in a cycle: {' after '.join(ways[name])}; none of them would ever close"


def check_name(name: str, what: str) -> None:
    if flaw := name_flaw(name, what):
        raise InvalidRequest(flaw)


def name_flaw(name: str, what: str) -> str:
    return "" if _NAME.fullmatch(name) else f"{name!r:.200} is not a valid name for a {what}; {NAME_RULE}"


def describe_gathering(rule: Gathering) -> str:
    """When a batch is made."""
    if rule.count == 1:
        return "for each file"
    limits = [f"{rule.count} files"] if rule.count else []
    limits += [f"{rule.size_bytes:,} bytes"] if rule.size_bytes else []
    limits += [f"{rule.wait_ms / 1000:g} s after the first"] if rule.wait_ms else []
    return " or ".join([*limits, "the end"])
