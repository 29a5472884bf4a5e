"""Static analysis of BPEL processes, by the rules of the specification's appendix B.

Each rule is a function with its number. A process that violates one is not deployed. Rules that are missing here hold
by construction, or are faults at run time, as in the specification; docs/reference/bpel.md lists which."""

from typing import Final

from mendflow.core.model.errors import Problem
from mendflow.formats.bpel.analysis import (
    data,
    declarations,
    documents,
    expression_flaws,
    expressions,
    handlers,
    links,
    messages,
    order,
    start_activities,
)
from mendflow.formats.bpel.analysis.process_view import ProcessView
from mendflow.formats.bpel.analysis.rules import AnalysisRule, Violation
from mendflow.formats.bpel.process import ParsedProcess

__all__ = ["RULES", "analyse", "differences_in", "flaws_in"]

MODULES: Final = (documents, declarations, data, expressions, messages, start_activities, links, order, handlers)
RULES: Final[tuple[AnalysisRule, ...]] = tuple(
    sorted(
        (each for module in MODULES for each in vars(module).values() if isinstance(each, AnalysisRule)),
        key=lambda each: each.number,
    )
)
"""All that are checked here, by number."""


def flaws_in(given: ParsedProcess) -> list[Problem]:
    """Expressions that can never be evaluated."""
    view = _view(given)
    return [_problem(view, each) for each in expression_flaws.flaws(view)]


def differences_in(given: ParsedProcess) -> list[Problem]:
    """Expressions in XPath 2.0 that may mean something else as XPath 1.0."""
    view = _view(given)
    return [_problem(view, each) for each in expression_flaws.differences(view)]


def analyse(given: ParsedProcess) -> list[Problem]:
    """All that breaks a rule, in the order of the rules."""
    view = _view(given)
    found = []
    for rule in RULES:
        before = f"SA{rule.number:05}: " if rule.number else ""
        for finding in rule.check(view):
            found.append(_problem(view, finding, before))
    return list(dict.fromkeys(found))


def _view(given: ParsedProcess) -> ProcessView:
    return ProcessView(given.document, given.definitions, given.places)


def _problem(view: ProcessView, finding: Violation, before: str = "") -> Problem:
    line = finding.at.sourceline or 0
    return Problem(file=finding.file or view.file, line=line, message=before + finding.message)
