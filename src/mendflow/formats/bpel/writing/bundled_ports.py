"""Which of our own ports a process uses exactly as they are shipped. Those need no file beside it.

A process may have a changed copy of such a WSDL: the address of another server, property aliases. Everything in it is
compared, so that nothing is lost."""

from collections.abc import Iterable, Mapping

from mendflow.core.model.xml import PartnerLink, XmlDefinitions
from mendflow.formats.bpel.definitions import Definitions
from mendflow.formats.bpel.imports import port_definitions
from mendflow.formats.bpel.ports import PORTS
from mendflow.formats.bpel.reader import split_name
from mendflow.formats.bpel.writing.wsdl import alias_home, roles_of


def bundled_namespaces(world: XmlDefinitions, links: Iterable[PartnerLink]) -> frozenset[str]:
    """Their namespaces."""
    links = list(links)
    return frozenset(space for name, space in PORTS.items() if _is_bundled(space, world, links, port_definitions(name)))


def _is_bundled(space: str, world: XmlDefinitions, links: list[PartnerLink], shipped: Definitions) -> bool:
    known = shipped.partner_link_types
    return _definitions_in(world, space) == _definitions_in(shipped.world("", {}), space) and all(
        known.get(link.type, {}).get(role) == port_type
        for link in links
        if split_name(link.type)[0] == space
        for role, port_type in roles_of(link).items()
    )


def _definitions_in(world: XmlDefinitions, space: str) -> tuple[object, ...]:
    """All that is said in a namespace, wherever it stands."""

    def of(named: Mapping[str, object]) -> dict[str, object]:
        return {name: each for name, each in named.items() if split_name(name)[0] == space}

    return (
        of(world.messages),
        of(world.port_types),
        of(world.properties),
        [alias for alias in world.aliases if split_name(alias_home(alias))[0] == space],
        [port for port in world.ports if split_name(port.service)[0] == space],
        [schema.text for schema in world.schemas if schema.namespace == space],
    )
