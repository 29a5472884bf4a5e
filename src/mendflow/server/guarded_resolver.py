"""Resolves names for requests whose address somebody else has chosen: what the guard does not allow is refused.

The connection goes to the very address that was checked."""

import ipaddress
import socket

from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import ThreadedResolver

from mendflow.address_guard import AddressGuard, private_sentence
from mendflow.server.outgoing import PrivateAddress


class GuardedResolver(AbstractResolver):
    """Resolves names, and returns only addresses that may be reached."""

    def __init__(self, guard: AddressGuard) -> None:
        self._inner = ThreadedResolver()
        self._guard = guard

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        found = await self._inner.resolve(host, port, family)
        addresses = [ipaddress.ip_address(each["host"].partition("%")[0]) for each in found]
        if not all(self._guard.allows(host, port, address) for address in addresses):
            raise PrivateAddress(private_sentence(host))
        return found

    async def close(self) -> None:
        await self._inner.close()
