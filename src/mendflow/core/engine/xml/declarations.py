"""The declarations visible at a place in a running flow: variables with their types, partner links, operations.

An environment knows its node of the plan, and the plan has the declarations of each node. So one walk outwards finds
the nearest declaration of a name, and the environment with its value, if it has one."""

from collections.abc import Callable

from mendflow.core.engine.faults import UNINITIALIZED_PARTNER_ROLE, UNINITIALIZED_VARIABLE, flow_fault
from mendflow.core.engine.state import Case, Env
from mendflow.core.model.values import Value
from mendflow.core.model.xml import (
    MessagePart,
    Operation,
    PartnerLink,
    ScopeDeclarations,
    XmlDefinitions,
    XmlMessage,
    XmlType,
)
from mendflow.core.soap.references import service_reference


def world_of(case: Case) -> XmlDefinitions:
    """Everything that the flow knows from its WSDL and XSD files."""
    world = case.plan.flow.xml
    assert world is not None, "only flows with XML get here"
    return world


def declaring_env(case: Case, env: int, has: Callable[[ScopeDeclarations], bool]) -> Env | None:
    """The nearest environment whose scope declares it."""
    while env:
        found = case.envs[env]
        declared = case.plan.nodes[found.node].declared if found.node >= 0 else None
        if declared is not None and has(declared):
            return found
        env = found.parent
    return None


def visible_declarations(case: Case, env: int) -> tuple[ScopeDeclarations, dict[str, Value]]:
    """All that is declared around a place, each name as it is meant there, and the values that there are."""
    types: dict[str, XmlType] = {}
    links: dict[str, PartnerLink] = {}
    sets: dict[str, tuple[str, ...]] = {}
    values: dict[str, Value] = {}
    while env:
        found = case.envs[env]
        node = case.plan.nodes[found.node]
        declared = node.declared or ScopeDeclarations()
        kept = {"": node.types.keys() - types, "@": declared.partner_links.keys() - links}
        kept["#"] = declared.correlation_sets.keys() - sets
        names = (prefix + name for prefix, new in kept.items() for name in sorted(new))
        values.update({name: found.variables[name] for name in names if name in found.variables})
        types = {**node.types, **types}
        links = {**declared.partner_links, **links}
        sets = {**declared.correlation_sets, **sets}
        env = found.parent
    return ScopeDeclarations(types=types, partner_links=links, correlation_sets=sets), values


def variable_at(case: Case, env: int, name: str) -> tuple[Env, XmlType]:
    """Where a variable is declared, and what it holds."""
    while env:
        found = case.envs[env]
        if found.node >= 0 and (type := case.plan.nodes[found.node].types.get(name)) is not None:
            return found, type
        env = found.parent
    raise flow_fault(UNINITIALIZED_VARIABLE, f"no variable {name} is declared here")


def link_at(case: Case, env: int, name: str) -> tuple[Env, PartnerLink]:
    """Where a partner link is declared, and what it says."""
    found = declaring_env(case, env, lambda declared: name in declared.partner_links)
    if found is None:
        raise flow_fault(UNINITIALIZED_PARTNER_ROLE, f"no partner link {name} is declared here")
    declared = case.plan.nodes[found.node].declared
    assert declared is not None
    return found, declared.partner_links[name]


def deployed_address(case: Case, port_type: str) -> Value:
    """The address of the first port of that type in the flow's WSDL files. A partner link that is not initialized may
    still use it when it is first needed."""
    ports = (port for port in world_of(case).ports if port_type and port.port_type == port_type and port.address)
    found = next(ports, None)
    return service_reference(found.address) if found is not None else None


def partner_at(case: Case, env: int, name: str) -> Value:
    """The reference of a partner link's partner."""
    holder, link = link_at(case, env, name)
    reference = (holder.variables.get(f"@{name}") or {}).get("partner") or deployed_address(case, link.partner)
    if reference is None:
        raise flow_fault(UNINITIALIZED_PARTNER_ROLE, f"the address of the partner of {name} is not known")
    return reference


def operation_of(case: Case, env: int, how: XmlMessage, *, mine: bool) -> Operation:
    """The operation that a message belongs to: one that the flow offers (`mine`), or one that it calls."""
    _, link = link_at(case, env, how.partner_link)
    port_type = link.mine if mine else link.partner
    found = world_of(case).port_types.get(port_type, {}).get(how.operation)
    if found is None:
        raise flow_fault(
            UNINITIALIZED_PARTNER_ROLE, f"{how.partner_link}: {port_type} has no operation {how.operation}"
        )
    return found


def parts_of(case: Case, message: str) -> tuple[MessagePart, ...]:
    """The parts of a message, in their order."""
    return world_of(case).messages.get(message, ())


def type_of_part(part: MessagePart) -> XmlType:
    return XmlType(element=part.element, type=part.type)
