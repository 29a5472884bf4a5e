"""Flows: deploy, list, read."""

from mendflow.core.model.flow import Flow
from mendflow.core.model.views import FlowView
from mendflow.operations.arguments import Body
from mendflow.operations.operation import Calls, operation
from mendflow.operations.roles import READERS, USERS


class FlowCalls(Calls, tag="flows"):
    @operation("POST", "/flows", USERS, status=201, repeatable=True)
    async def deploy(self, flow: Body[Flow]) -> FlowView:
        """Deploy a flow. The body is the flow model as JSON. Deploying an unchanged flow again makes no new version."""

    @operation("GET", "/flows", READERS)
    async def flows(self) -> list[FlowView]:
        """All deployed flows, each in its newest version."""

    @operation("GET", "/flows/{name}", READERS)
    async def flow(self, name: str) -> FlowView:
        """One flow with its whole model."""
