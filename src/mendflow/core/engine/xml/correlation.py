"""Correlation sets: the properties that the messages of one conversation share, used for routing.

A set belongs to the scope that declares it. A message initiates it once, by giving its properties their values; after
that it never changes, and every message sent or taken under it must have the same values. If one of several sets is
violated, nothing changes."""

from collections.abc import Iterable
from enum import IntEnum
from typing import Final

from mendflow.core.engine.faults import CORRELATION_VIOLATION, flow_fault
from mendflow.core.engine.state import Case, Env
from mendflow.core.engine.xml.declarations import declaring_env, world_of
from mendflow.core.engine.xml.properties import properties_of
from mendflow.core.model.values import Value
from mendflow.core.model.xml import Correlation

MARK: Final = "#"
"""What the name of a correlation set has before it among the names of its environment."""


class Fit(IntEnum):
    """How well a message matches a listener."""

    NOT = 0
    AGAINST = 1  # it would be taken, and violate a set
    PLAIN = 2  # nothing excludes it
    CORRELATED = 3


def holder_of(case: Case, env: int, name: str) -> tuple[Env, tuple[str, ...]]:
    """The environment that a set belongs to, and the set's properties."""
    found = declaring_env(case, env, lambda declared: name in declared.correlation_sets)
    assert found is not None, f"no scope declares the correlation set {name}"
    declared = case.plan.nodes[found.node].declared
    assert declared is not None
    return found, declared.correlation_sets[name]


def fit_of(
    case: Case,
    env: int,
    correlations: Iterable[Correlation],
    message_type: str,
    message: Value,
    known: dict[str, Value],
) -> Fit:
    """Whether a message has the values of the sets that somebody listens with. `known` are the properties of this very
    message that were looked up before."""
    fit = Fit.PLAIN
    for each in correlations:
        home, properties = holder_of(case, env, each.set)
        held = home.variables.get(MARK + each.set)
        if held is None:
            if each.initiate == "no":
                return Fit.NOT
            continue
        if properties_of(world_of(case), properties, message_type, message, known) == held:
            fit = max(fit, Fit.CORRELATED)
        elif each.initiate == "yes":
            fit = Fit.AGAINST
        else:
            return Fit.NOT
    return fit


def correlation_values(
    case: Case, env: int, correlations: Iterable[Correlation]
) -> tuple[tuple[str, ...], Value] | None:
    """The properties of a set, and the values that a message must have for them to be taken; None if there is none."""
    for each in correlations:
        home, properties = holder_of(case, env, each.set)
        held = home.variables.get(MARK + each.set)
        if held is not None and each.initiate != "yes":
            return properties, held
    return None


def demand_initiated(case: Case, env: int, correlations: Iterable[Correlation]) -> None:
    """A set can be followed only after it has been initiated."""
    for each in correlations:
        if each.initiate == "no" and holder_of(case, env, each.set)[0].variables.get(MARK + each.set) is None:
            raise flow_fault(CORRELATION_VIOLATION, f"the correlation set {each.set} has not been initiated yet")


def correlate(
    case: Case, env: int, correlations: Iterable[Correlation], message_type: str, message: Value
) -> tuple[str, ...]:
    """Check a message against its sets, and initiate those that it starts; returns their names. Throws
    correlationViolation."""
    begun: list[tuple[Env, str, list[Value]]] = []
    for each in correlations:
        home, properties = holder_of(case, env, each.set)
        held = home.variables.get(MARK + each.set)
        if held is None and each.initiate == "no":
            raise flow_fault(CORRELATION_VIOLATION, f"the correlation set {each.set} has not been initiated yet")
        if held is not None and each.initiate == "yes":
            raise flow_fault(CORRELATION_VIOLATION, f"the correlation set {each.set} is initiated already")
        values = properties_of(world_of(case), properties, message_type, message)
        if values is None:
            raise flow_fault(
                CORRELATION_VIOLATION, f"the message has not all properties of the correlation set {each.set}"
            )
        if held is None:
            begun.append((home, MARK + each.set, values))
        elif values != held:
            raise flow_fault(
                CORRELATION_VIOLATION, f"the message is of another conversation than set {each.set}: {values}"
            )
    for home, name, values in begun:
        home.variables[name] = values
    return tuple(name for _, name, _ in begun)
