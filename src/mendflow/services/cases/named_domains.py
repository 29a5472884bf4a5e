"""A flow that names a domain must not run where nobody knows that domain: it is refused before its case begins."""

from typing import Protocol

from mendflow.core.domains.named import domains_named
from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.flow import Flow
from mendflow.services.base.hub import Hub


class KnownDomains(Protocol):
    def knows_domain(self, name: str) -> bool:
        """Whether it is this domain itself, or work can be sent there."""
        ...


def demand_domains(flow: Flow, hub: Hub) -> None:
    known = hub.provider(KnownDomains)
    for name, step in domains_named(flow).items():
        if known is None or not known.knows_domain(name):
            raise InvalidRequest(
                f"{flow.name}: {step} is for the domain {name!r}, which is not connected here; mendflow domains lists"
                " those that are, and `domain: any` takes whichever can do it",
                domain=name,
            )
