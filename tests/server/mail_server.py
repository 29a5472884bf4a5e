"""A real mail server in the tests' own process, which keeps what it gets."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any, cast

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session


class Mailbox:
    """Takes mail for everybody but those in `unknown`. With a password, only from those who log in with it."""

    def __init__(self, *, password: str = "") -> None:
        self.mails: list[EmailMessage] = []
        self.unknown: set[str] = set()
        self.password = password
        self.port = 0

    async def handle_RCPT(
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if address in self.unknown:
            return "550 no such person"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        content = cast(bytes, envelope.content)
        self.mails.append(message_from_bytes(content, policy=policy.default))
        return "250 OK"

    def _authenticate(self, server: SMTP, session: Session, envelope: Envelope, kind: str, data: Any) -> AuthResult:
        right = isinstance(data, LoginPassword) and data.password == self.password.encode()
        return AuthResult(success=right, handled=False)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        def line() -> SMTP:
            demands = bool(self.password)
            return SMTP(
                self,
                hostname="mail.example.org",
                authenticator=self._authenticate if demands else None,
                auth_required=demands,
                auth_require_tls=False,
            )

        server = await asyncio.get_running_loop().create_server(line, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield
        finally:
            server.close()
