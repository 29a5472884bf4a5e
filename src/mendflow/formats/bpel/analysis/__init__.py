"""Static analysis of BPEL processes, by the rules of the specification's appendix B.

Each rule is a function with its number. A process that violates one is not deployed. Rules that are missing here hold
by construction, or are faults at run time, as in the specification; docs/reference/bpel.md lists which."""

from typing import Final

from mendflow.core.model.errors import Problem
from mendflow.formats.bpel.analysis import (
    data,
    declarations,
    documents,
    expressions,
    handlers,
    links,
    messages,
    order,
    start_activities,
)
from mendflow.formats.bpel.analysis.process_view import ProcessView
from mendflow.formats.bpel.analysis.rules import AnalysisRule
from mendflow.formats.bpel.process import ParsedProcess

__all__ = ["RULES", "analyse"]

MODULES: Final = (documents, declarations, data, expressions, messages, start_activities, links, order, handlers)
RULES: Final[tuple[AnalysisRule, ...]] = tuple(
    sorted(
        (each for module in MODULES for each in vars(module).values() if isinstance(each, AnalysisRule)),
        key=lambda each: each.number,
    )
)
"""All that are checked here, by number."""


def analyse(given: ParsedProcess) -> list[Problem]:
    """All that breaks a rule, in the order of the rules."""
    view = ProcessView(given.document, given.definitions, given.places)
    found = []
    for rule in RULES:
        before = f"SA{rule.number:05}: " if rule.number else ""
        for finding in rule.check(view):
            line = finding.at.sourceline or 0
            found.append(Problem(file=finding.file or view.file, line=line, message=before + finding.message))
    return list(dict.fromkeys(found))
