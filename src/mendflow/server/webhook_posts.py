"""Sends notifications to webhooks, by the guarded way out of the server. Of the answer only the status counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from mendflow.address_guard import AddressGuard, check_url
from mendflow.core.model.errors import InvalidRequest
from mendflow.lazy import LazyModule
from mendflow.server.outgoing import OutgoingCalls, failure_sentence
from mendflow.services.base.poster import Mail

if TYPE_CHECKING:
    import aiohttp

    from mendflow.server.mail import SmtpSender
else:
    aiohttp = LazyModule("aiohttp")

TOTAL_S, CONNECT_S = 10.0, 5.0


class HttpPoster:
    def __init__(self, guard: AddressGuard, *, mail: SmtpSender | None = None) -> None:
        self.guard = guard
        self.mails = mail is not None
        self._mail = mail
        self._calls = OutgoingCalls(guard, total_s=TOTAL_S, connect_s=CONNECT_S)

    async def close(self) -> None:
        await self._calls.close()

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> str:
        try:
            check_url(url, guard=self.guard)
            async with self._calls.request("POST", url, data=body, headers=headers) as response:
                status, to = response.status, urlsplit(url).hostname
        except InvalidRequest as error:
            return error.message
        except TimeoutError:
            return f"no answer within {TOTAL_S:g} s"
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return failure_sentence(error)
        if 200 <= status < 300:
            return ""
        moved = "; redirects are not followed, give the address itself" if 300 <= status < 400 else ""
        return f"{to} answered with status {status}{moved}"

    async def mail(self, mail: Mail) -> str:
        return await self._mail.send(mail) if self._mail is not None else "this server knows no mail server"
