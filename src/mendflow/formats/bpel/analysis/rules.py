"""A rule of the static analysis: its number, its sentence, and a function that finds violations."""

from collections.abc import Callable, Iterator

import msgspec

from mendflow.core.xml import ParsedElement
from mendflow.formats.bpel.analysis.process_view import ProcessView


class Violation(msgspec.Struct, frozen=True):
    """Something that breaks a rule, and where. `file` is empty for the process itself."""

    at: ParsedElement
    message: str
    file: str = ""


Check = Callable[[ProcessView], Iterator[Violation]]


class AnalysisRule(msgspec.Struct, frozen=True):
    """What has no number in the specification, as a variable that is not declared, has the number 0. `sentence` is the
    rule in our own words."""

    number: int
    sentence: str
    check: Check


def rule(number: int) -> Callable[[Check], AnalysisRule]:
    """Make a function the check of a rule, or one of several. Its docstring is the rule's sentence."""
    return lambda check: AnalysisRule(number, " ".join((check.__doc__ or "").split()), check)
