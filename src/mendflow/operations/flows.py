"""Flows: deploy, list, read, remove."""

from typing import Annotated

from msgspec import Meta

from mendflow.core.model.flow import Flow
from mendflow.core.model.flow_checks import FlowCheck
from mendflow.core.model.flow_files import FlowFileView
from mendflow.core.model.graphs import GraphView
from mendflow.core.model.values import FileRef
from mendflow.core.model.views import FlowView
from mendflow.operations.arguments import Body
from mendflow.operations.names import ProjectName
from mendflow.operations.operation import Calls, operation
from mendflow.operations.roles import ADMINISTRATORS, AUTHORS, VIEWERS
from mendflow.operations.subjects import FLOW, INSTALLATION, LISTED, NEW_FLOW

FlowText = Annotated[str, Meta(max_length=1 << 20, description="The whole text of the file.")]

StoredBeside = dict[str, FileRef]


class FlowCalls(Calls, tag="flows"):
    @operation("POST", "/flows", AUTHORS, NEW_FLOW, status=201, repeatable=True)
    async def deploy(self, flow: Body[Flow], *, project: ProjectName = "") -> FlowView:
        """Deploy a flow. The body is the flow model as JSON. Deploying an unchanged flow again makes no new version.
        What the flow has under `on` does not take effect by this; triggers that are in effect stay so. A new flow
        belongs to `project`, and only its authors deploy further versions."""

    @operation("PUT", "/flows/{flow.name}", ADMINISTRATORS, NEW_FLOW, repeatable=True)
    async def deploy_with_triggers(self, flow: Body[Flow], *, project: ProjectName = "") -> FlowView:
        """Deploy a flow, and have what it says under `on` take effect. Its folder is watched, its schedule
        starts cases, and ends of its cases are told, in place of what was so before. For administrators, because they
        alone may make watches, schedules and webhooks."""

    @operation("POST", "/flow-checks", AUTHORS, INSTALLATION, repeatable=True, audited=False)
    async def check_flow(self, text: FlowText, name: str = "", files: StoredBeside | None = None) -> FlowCheck:
        """Everything that is wrong with the text of a flow file, and where. Nothing is stored, and no file that the
        text names is looked for. `name` is the file's; only YAML is checked on a server. `files` has those beside it
        that were uploaded, by their paths or their names: the flow that is answered refers to them."""

    @operation("GET", "/flows", VIEWERS, LISTED)
    async def flows(self) -> list[FlowView]:
        """All deployed flows, each in its newest version."""

    @operation("GET", "/flows/{name}", VIEWERS, FLOW)
    async def flow(self, name: str) -> FlowView:
        """One flow with its whole model."""

    @operation("GET", "/flows/{name}/file", VIEWERS, FLOW)
    async def flow_file(self, name: str) -> FlowFileView:
        """The file that the newest version of a flow was read from, with its comments. It is as it was sent, but for
        passwords in URLs, which are `(hidden)`; one of more than 1,048,576 characters is not kept. Its text is for
        those who may start cases of the flow: an environment may stand in it."""

    @operation("GET", "/flows/{name}/graph", VIEWERS, FLOW)
    async def flow_graph(self, name: str) -> GraphView:
        """A flow as a graph, as a case of it is drawn before it begins."""

    @operation("DELETE", "/flows/{name}", ADMINISTRATORS, FLOW)
    async def remove_flow(self, name: str) -> FlowView:
        """Remove a flow. Nobody can start cases of it any more, and its triggers are gone. Its cases stay."""
