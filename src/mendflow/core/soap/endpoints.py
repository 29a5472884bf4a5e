"""What a BPEL flow offers: the partner links on which it has a role, and the operations that it receives there.

The channel of a receiving activity gives the link and the operation. The link's declaration, looked up outwards from
the activity, gives the port type."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from mendflow.core.model.flow import Flow, OnMessage, Receive, Scope
from mendflow.core.model.xml import PartnerLink, XmlDefinitions
from mendflow.core.soap.messages import BoundOperation, bind_operation

Links = Mapping[str, PartnerLink]


class InboundOperation(NamedTuple):
    """An operation that a flow waits for. `link` is the partner link as its channels have it."""

    channel: str
    link: str
    binding: BoundOperation
    creates: bool


class Endpoint(NamedTuple):
    """What is offered at one address: all operations of a flow, or those of one of its links."""

    world: XmlDefinitions
    inbound: tuple[InboundOperation, ...]

    @property
    def links(self) -> dict[str, str]:
        """The port type of each link."""
        return {each.link: each.binding.port_type for each in self.inbound}

    def of(self, link: str) -> "Endpoint":
        return Endpoint(self.world, tuple(each for each in self.inbound if each.link == link))


def endpoint_of(flow: Flow) -> Endpoint | None:
    """None if the flow speaks no XML. Each channel is there once, and begins cases if one of its receives does. Those
    that do come first: where a message could mean several links, it is for one of these."""
    if flow.xml is None:
        return None
    found: dict[str, InboundOperation] = {}
    for each in _inbound_operations(flow, flow.xml):
        known = found.get(each.channel)
        if known is None or (each.creates and not known.creates):
            found[each.channel] = each
    return Endpoint(flow.xml, tuple(sorted(found.values(), key=lambda each: not each.creates)))


def _inbound_operations(flow: Flow, world: XmlDefinitions) -> Iterator[InboundOperation]:
    pending: list[tuple[Any, Links]] = [(flow.body, {})]
    while pending:
        value, links = pending.pop()
        if isinstance(value, Scope | OnMessage) and value.declared is not None:
            links = {**links, **value.declared.partner_links}
        if isinstance(value, Receive | OnMessage) and value.xml is not None:
            link, operation = links.get(value.xml.partner_link), value.xml.operation
            if link is not None and operation in world.port_types.get(link.mine, {}):
                name = value.channel.removesuffix(f".{operation}")
                yield InboundOperation(
                    value.channel, name, bind_operation(world, link.mine, operation), value.xml.creates
                )
        pending += [(part, links) for part in reversed(_inside(value))]


def _inside(value: Any) -> list[Any]:
    if isinstance(value, tuple):
        return list(value)
    return [getattr(value, name) for name in value.__struct_fields__] if isinstance(value, msgspec.Struct) else []
