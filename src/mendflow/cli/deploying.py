"""A flow goes to the server together with the code of its Python functions.

So pilots on other machines have the code, and a re-run sees when it has changed."""

from mendflow.client import Client
from mendflow.core.model.flow import Flow
from mendflow.core.model.views import FlowView
from mendflow.formats.python.sources import code_files, with_code


async def deploy(client: Client, flow: Flow) -> FlowView:
    """Give the code into the server's keeping, then the flow that names it."""
    kept = {path: await client.upload(path) for path in set(code_files(flow).values())}
    return await client.deploy(with_code(flow, kept))
