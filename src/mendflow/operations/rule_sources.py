"""Sources of conditions: registered, listed, tried, removed."""

from mendflow.core.model.sources import SourceSpec, SourceTrial, SourceView
from mendflow.operations.operation import Calls, operation
from mendflow.operations.roles import ADMINISTRATORS
from mendflow.operations.subjects import INSTALLATION


class SourceCalls(Calls, tag="rules"):
    @operation("GET", "/rule-sources", ADMINISTRATORS, INSTALLATION)
    async def rule_sources(self) -> list[SourceView]:
        """The sources that conditions can read. Secrets are not shown. For administrators, because an address may be a
        secret, too."""

    @operation("PUT", "/rule-sources/{source.name}", ADMINISTRATORS, INSTALLATION)
    async def put_rule_source(self, source: SourceSpec) -> SourceView:
        """Register a source, or replace it."""

    @operation("DELETE", "/rule-sources/{name}", ADMINISTRATORS, INSTALLATION)
    async def remove_rule_source(self, name: str) -> SourceView:
        """Remove a source. Refused while rules read it."""

    @operation("POST", "/rule-sources/{name}/try", ADMINISTRATORS, INSTALLATION, repeatable=True)
    async def try_rule_source(self, name: str, decision: str = "") -> SourceTrial:
        """Ask a source now. If its address or query has parts of a context, give a decision: its context is taken."""
