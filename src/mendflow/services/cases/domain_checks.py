"""A flow that names a domain must not run where nobody knows that domain: it is refused before its case begins."""

from typing import Final, Protocol

from mendflow.core.domains.domain_names import not_connected
from mendflow.core.domains.domains_of_flow import domains_named
from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.flow import Flow
from mendflow.services.base.hub import Hub


class KnownDomains(Protocol):
    def knows_domain(self, name: str) -> bool:
        """Whether it is this domain itself, or work can be sent there."""
        ...


FLOWS_MAX: Final = 64
_NAMED: Final[dict[int, tuple[Flow, dict[str, str]]]] = {}
"""By the identity of a flow: the flow itself, so that no other gets that identity, and the domains that it names. A
flow that is started again and again is looked through once."""


def _named_by(flow: Flow) -> dict[str, str]:
    found = _NAMED.get(id(flow))
    if found is None:
        if len(_NAMED) >= FLOWS_MAX:
            _NAMED.clear()
        found = _NAMED[id(flow)] = (flow, domains_named(flow))
    return found[1]


def demand_domains(flow: Flow, hub: Hub) -> None:
    named = _named_by(flow)
    known = hub.provider(KnownDomains) if named else None
    for name, step in named.items():
        if known is None or not known.knows_domain(name):
            raise InvalidRequest(
                f"{flow.name}, step {step}: {not_connected(name)}, and `domain: any` takes whichever can do it",
                domain=name,
            )
