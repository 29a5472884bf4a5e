"""Resolves names for requests whose address somebody else has chosen: private addresses are refused.

The connection goes to the very address that was checked."""

import ipaddress
import socket

from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import ThreadedResolver

from mendflow.server.webhook_posts import PrivateAddress
from mendflow.services.base.addresses import is_private, private_sentence


class PublicResolver(AbstractResolver):
    """Resolves names, and returns only addresses that may be reached."""

    def __init__(self) -> None:
        self._inner = ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        found = await self._inner.resolve(host, port, family)
        if any(is_private(ipaddress.ip_address(each["host"].partition("%")[0])) for each in found):
            raise PrivateAddress(private_sentence(host))
        return found

    async def close(self) -> None:
        await self._inner.close()
