"""The copies of an assign, and the initial values of a scope's variables.

All copies are made, or none. Each sees the results of those before it."""

from collections.abc import Iterable
from typing import Final

from mendflow.core.engine.faults import INVALID_VARIABLES, UNINITIALIZED_VARIABLE, flow_fault
from mendflow.core.engine.state import Case, Env
from mendflow.core.engine.xml.declarations import deployed_address, variable_at, world_of
from mendflow.core.engine.xml.sources import CopySources
from mendflow.core.engine.xml.targets import CopyTargets
from mendflow.core.model.xml import ScopeDeclarations, XmlCopy
from mendflow.core.soap.references import own_reference
from mendflow.core.xml.schema import violations

WORK_A_COPY: Final = 150
"""The fixed cost of a copy."""


WORK_A_VALIDATION: Final = 25_000
"""The cost of validating a variable against its schema: it is not measured, and can be high."""


def copy_all(places: CopyTargets, sources: CopySources, copies: Iterable[XmlCopy]) -> None:
    for copy in copies:
        places.case.meter.spend(WORK_A_COPY)
        given = sources.read(copy.source, ignore_missing=copy.ignore_missing)
        if given is not None:
            places.put(copy.target, given, keep_name=copy.keep_name)


def demand_valid(case: Case, env: int, names: Iterable[str]) -> None:
    """Throw `invalidVariables` if one of them does not match its schema."""
    problems: list[str] = []
    for name in names:
        holder, type = variable_at(case, env, name)
        if name not in holder.variables:
            raise flow_fault(UNINITIALIZED_VARIABLE, f"the variable {name} has no value yet")
        case.meter.spend(WORK_A_VALIDATION)
        found = violations(world_of(case), holder.variables[name], type)
        problems += [f"{name}: {problem}" for problem in found]
    if problems:
        raise flow_fault(INVALID_VARIABLES, "; ".join(problems[:5]))


def declare(case: Case, env: Env, declared: ScopeDeclarations) -> None:
    """Start a scope: set its partner references, as far as known, and the initial values of its variables."""
    for name, link in declared.partner_links.items():
        known = link.initialize is not False
        env.variables[f"@{name}"] = {
            "mine": own_reference(case.plan.flow.name, name) if link.mine else None,
            "partner": deployed_address(case, link.partner) if known else None,
        }
    if declared.first:
        copy_all(CopyTargets(case, env.id), CopySources(case, env.id), declared.first)
