"""Which data sets make sense, and what they are to do, in words."""

import re
from typing import Final

from mendflow.core.data.gathering import FILES_MAX, wished_inputs
from mendflow.core.expressions import ExpressionError, references
from mendflow.core.model.data_sets import DataSetWish, Gathering
from mendflow.core.model.problems import Invalid

NAME_RULE: Final = "use up to 100 letters, digits, and . _ -, the first a letter or a digit"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_SEEN = ("file", "files", "set", "batch")


def check_wish(wish: DataSetWish) -> None:
    """Raises Invalid for a set that makes no sense by itself."""
    check_name(wish.name, "data set")
    for before in wish.after:
        check_name(before, "data set")
        if before == wish.name:
            raise Invalid(f"data set {wish.name} cannot come after itself")
    names = [rule.name for rule in wish.gatherings]
    if doubled := next((name for name in names if names.count(name) > 1), ""):
        raise Invalid(f"data set {wish.name} has two gatherings {doubled!r}; give each a name of its own")
    for rule in wish.gatherings:
        _check_rule(wish.name, rule)


def _check_rule(data_set: str, rule: Gathering) -> None:
    check_name(rule.name, f"gathering of data set {data_set}")
    where = f"gathering {rule.name} of data set {data_set}"
    if not rule.flow:
        raise Invalid(f"{where} names no flow")
    for name, number in (("count", rule.count), ("size_bytes", rule.size_bytes), ("wait_ms", rule.wait_ms)):
        if number < 0:
            raise Invalid(f"{where}: {name} is {number}; give a number above 0, or leave it away")
    if rule.count > FILES_MAX:
        raise Invalid(f"{where}: count is {rule.count}; at most {FILES_MAX:,} files are in one batch")
    try:
        unknown = references(wished_inputs(rule)) - set(_SEEN)
    except ExpressionError as error:
        raise Invalid(f"{where}: {error.message}") from error
    if unknown:
        raise Invalid(f"{where}: its inputs ask for `{min(unknown)}`; known here are {', '.join(_SEEN)}")


def check_name(name: str, what: str) -> None:
    if not _NAME.fullmatch(name):
        raise Invalid(f"{name!r} is no name for a {what}; {NAME_RULE}")


def in_words(rule: Gathering) -> str:
    """When a batch is made."""
    if rule.count == 1:
        return "for each file"
    limits = [f"{rule.count} files"] if rule.count else []
    limits += [f"{rule.size_bytes:,} bytes"] if rule.size_bytes else []
    limits += [f"{rule.wait_ms / 1000:g} s after the first"] if rule.wait_ms else []
    return " or ".join([*limits, "the end"])
