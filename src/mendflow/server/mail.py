"""Sends mail through the mail server that the owner of this server has named.

The connection is encrypted wherever the mail server can: `smtps` from the first byte, `smtp` by STARTTLS. A password is
sent only over an encrypted connection, or to this machine."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import unquote, urlsplit

import msgspec

from mendflow.address_guard import is_loopback
from mendflow.core.model.alerts import MailOptions
from mendflow.core.model.errors import InvalidRequest, NotFound
from mendflow.lazy import LazyModule
from mendflow.services.base.poster import Mail

if TYPE_CHECKING:
    import email.message as messages
    import email.utils as mail_words
    import smtplib
else:
    messages, mail_words = LazyModule("email.message"), LazyModule("email.utils")
    smtplib = LazyModule("smtplib")

TIMEOUT_S = 30.0


class MailServer(msgspec.Struct, frozen=True, kw_only=True):
    """Where mail is handed over, and from whom it is."""

    scheme: Literal["smtp", "smtps"]
    host: str
    port: int
    sender: str
    user: str = ""
    password: str = ""

    def __repr__(self) -> str:
        return f"MailServer({self.scheme}://{self.host}:{self.port})"  # keeps the password out of logs


def mail_server(url: str, sender: str, password_file: str) -> MailServer:
    """What the owner has given: `smtp://[USER@]HOST[:PORT]`, whom mails come from, and a file with a password."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port, parts = None, None, urlsplit("")
    if host is None or parts.scheme not in ("smtp", "smtps") or port == 0 or parts.path.strip("/") or parts.query:
        raise InvalidRequest(f"--smtp {_without_password(url)!r} is no mail server; write smtp://mail.example.org:587")
    if parts.password is not None:
        raise InvalidRequest("--smtp has a password, which others could see; give it with --smtp-password-file FILE")
    user = unquote(parts.username or "")
    if user and not password_file:
        raise InvalidRequest(f"--smtp names the user {user}; give the password with --smtp-password-file FILE")
    return MailServer(
        scheme="smtps" if parts.scheme == "smtps" else "smtp",
        host=host,
        port=port or (465 if parts.scheme == "smtps" else 587 if user else 25),
        sender=sender or f"mendflow@{host}",
        user=user,
        password=_password(password_file) if user else "",
    )


def _without_password(url: str) -> str:
    before, at, after = url.rpartition("@")
    return f"...{at}{after}" if at and ":" in before.partition("//")[2] else url


def _password(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise NotFound(f"cannot read the password file {path}; check that it exists") from error


class SmtpSender:
    def __init__(self, server: MailServer) -> None:
        self._server = server

    async def send(self, mail: Mail) -> str:
        """Empty when the mail server has accepted it for all its receivers; else why not. Never raises."""
        try:
            return await asyncio.to_thread(self._send, mail)
        except TimeoutError:
            return f"{self._server.host} did not answer within {TIMEOUT_S:g} s"
        except smtplib.SMTPRecipientsRefused as error:
            return f"{self._server.host} refused {', '.join(map(str, error.recipients))}"
        except smtplib.SMTPAuthenticationError:
            return f"{self._server.host} did not take user and password"
        except smtplib.SMTPResponseException as error:
            return f"{self._server.host} answered with {error.smtp_code}"
        except (smtplib.SMTPException, ssl.SSLError) as error:
            return f"{self._server.host} could not be used ({type(error).__name__})"
        except OSError as error:
            return f"no connection to {self._server.host}: {error.strerror or error}"

    def _send(self, mail: Mail) -> str:
        server = self._server
        with self._open() as line:
            line.ehlo_or_helo_if_needed()
            encrypted = server.scheme == "smtps"
            if not encrypted and line.has_extn("starttls"):
                line.starttls(context=ssl.create_default_context())
                line.ehlo()
                encrypted = True
            if server.user:
                if not encrypted and not is_loopback(server.host):
                    return f"{server.host} does not encrypt, so the password is not sent; use smtps://"
                line.login(server.user, server.password)
            refused = line.send_message(self._message(mail))
        return f"{server.host} refused {', '.join(refused)}" if refused else ""

    def _open(self) -> smtplib.SMTP:
        server = self._server
        if server.scheme == "smtps":
            context = ssl.create_default_context()
            return smtplib.SMTP_SSL(server.host, server.port, timeout=TIMEOUT_S, context=context)
        return smtplib.SMTP(server.host, server.port, timeout=TIMEOUT_S)

    def _message(self, mail: Mail) -> messages.EmailMessage:
        message = messages.EmailMessage()
        message["From"] = self._server.sender
        message["To"] = ", ".join(mail.to)
        message["Subject"] = mail.subject
        message["Date"] = mail_words.formatdate()
        message["Message-ID"] = f"<{mail.id}@{self._server.sender.rpartition('@')[2]}>"
        message["Auto-Submitted"] = "auto-generated"  # so that nobody's absence note answers it
        message.set_content(mail.text)
        return message


def mail_sender(options: MailOptions) -> SmtpSender:
    """Sends mail through the mail server that the owner has given."""
    return SmtpSender(mail_server(options.smtp, options.sender, options.password_file))
