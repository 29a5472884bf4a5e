"""The Python SDK: `Client` for asyncio, `SyncClient` for plain scripts."""

from mendflow.client.blocking import SyncClient
from mendflow.client.client import Client

__all__ = ["Client", "SyncClient"]
