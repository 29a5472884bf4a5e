"""Prints what distinguishes a case from another one, with conditions that can be pasted."""

import shlex
from collections.abc import Sequence

import msgspec

from mendflow.cli.printing import say
from mendflow.core.model.rule_views import DifferencesView, DifferenceView
from mendflow.core.model.rules import rule_text
from mendflow.core.model.values import Value
from mendflow.pages.formatting import one_line

DIFFERENCES_SHOWN = 8
VALUE_CHARS = 50


def say_differences(found: Sequence[DifferenceView], most: int = DIFFERENCES_SHOWN, *, err: bool = False) -> None:
    """fault.exit_code: 7 here, 3 there    --if 'fault.exit_code == 7'."""
    for each in found[:most]:
        here = "none" if each.missing == "here" else _value(each.here)
        there = "none" if each.missing == "there" else _value(each.there)
        offer = f"    --if {shlex.quote(each.conditions[0])}" if each.conditions else ""
        say(f"  {each.path}: {here} here, {there} there{offer}", err=err)
    if len(found) > most:
        say(f"  and {len(found) - most:,} more; --json has them all", err=err)


def compared_with(view: DifferencesView) -> str:
    if view.rule is not None:
        return f"the cornerstone of {rule_text(view.rules, view.rule)}"
    return f"the failure {view.other}" if view.other else "nothing: there is no case to compare it with"


def _value(value: Value) -> str:
    return one_line(msgspec.json.encode(value).decode(), VALUE_CHARS)
