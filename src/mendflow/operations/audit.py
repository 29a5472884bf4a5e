"""The audit log: who did what. Nobody writes to it by an operation."""

from typing import Annotated

from mendflow.core.model.audit import AuditPage, AuditQuery, ChainView
from mendflow.operations.arguments import Spread
from mendflow.operations.operation import Calls, operation
from mendflow.operations.roles import ADMINISTRATORS
from mendflow.operations.subjects import INSTALLATION


class AuditCalls(Calls, tag="audit"):
    @operation("GET", "/audit", ADMINISTRATORS, INSTALLATION)
    async def find_audit(self, query: Annotated[AuditQuery, Spread()]) -> AuditPage:
        """Who did what, the newest first. The page may be short although more follows: `Mendflow-Next` says from where
        to continue."""

    @operation("GET", "/audit/chains", ADMINISTRATORS, INSTALLATION)
    async def verify_audit(self) -> list[ChainView]:
        """Whether the audit log is whole. Every entry of every server's chain is read and compared with the one
        before."""
