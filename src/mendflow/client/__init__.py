"""The Python SDK: `Client` for asyncio, `SyncClient` for plain scripts."""

from mendflow.client.client import Client
from mendflow.client.sync_client import SyncClient

__all__ = ["Client", "SyncClient"]
