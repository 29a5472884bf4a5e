"""Opens a page of a server's web app in the browser of whoever sits here, signed in.

A server that knows the account needs no sign-in. Otherwise the browser gets a one-time code. It is not in the address
that the browser is started with, because other accounts of the machine can read that: the browser is sent to a port of
this process, which answers one caller, of the same account, with the real address."""

import asyncio
import os
import socket
import sys
import webbrowser
from typing import Final, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

from mendflow.address_guard import is_loopback
from mendflow.cli.printing import say
from mendflow.client import Client
from mendflow.local_accounts import account_of_transport

SIGN_IN: Final = "/sign-in"
BROWSER_S: Final = 55.0
"""A browser that has not come by then is not waited for; its code is about to end."""

HEADERS: Final = (
    "Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
)


def page_url(server: str, path: str = "/") -> str:
    """The address of a page, for people."""
    return server.rstrip("/") + path


def case_path(case: str) -> str:
    return f"/cases/{quote(case, safe='')}"


class PageAddress(NamedTuple):
    """The address of a page. `private` signs whoever opens it in, once; empty if there is no need for that."""

    url: str
    private: str = ""


async def address_of(client: Client, path: str = "/") -> PageAddress:
    url = page_url(client.url, path)
    if (await client.me()).signed_in_by == "socket":
        return PageAddress(url)
    code = (await client.create_sign_in_code()).code
    words = urlencode({"code": code, **({"next": path} if path != "/" else {})})
    return PageAddress(url, page_url(client.url, f"{SIGN_IN}?{words}"))


async def show_page(client: Client, path: str = "/", *, browser: bool = True) -> None:
    """Open a page, or print its address if there is no browser."""
    url, private = await address_of(client, path)
    can_open = browser and can_open_browser()
    if can_open and await (open_private(private) if private else asyncio.to_thread(webbrowser.open, url)):
        say(f"the web app: {url}", err=True)
        return
    say(f"open this in a browser, within a minute and once: {private}" if private else f"open this in a browser: {url}")
    _say_way(client.url)


def can_open_browser() -> bool:
    """Whether a window can be opened. A browser in the terminal would take that from us."""
    if sys.platform in ("darwin", "win32"):
        return True
    return any(os.environ.get(name) for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME"))


def _say_way(server: str) -> None:
    """On a machine that somebody is logged in to from elsewhere, the browser is elsewhere."""
    parts = urlsplit(server)
    if os.environ.get("SSH_CONNECTION") and is_loopback(parts.hostname or ""):
        port = parts.port or 80
        say(f"from your own machine: ssh -L {port}:localhost:{port} {socket.gethostname()}", err=True)
        if parts.hostname != "localhost":
            say(f"and open it there with localhost:{port} in place of {parts.netloc}", err=True)


async def open_private(url: str) -> bool:
    """Open an address that nobody else may see; false if no browser came for it."""
    came = asyncio.Event()

    async def send(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            asked = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), BROWSER_S)
            if not _is_ours(writer) or came.is_set() or _host(asked) != own:
                writer.write(f"HTTP/1.1 403 Forbidden\r\n{HEADERS}".encode())
            else:
                came.set()
                writer.write(f"HTTP/1.1 303 See Other\r\nLocation: {url}\r\n{HEADERS}".encode())
            await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # no browser sends that
        finally:
            writer.close()

    listener = await asyncio.start_server(send, "127.0.0.1", 0)
    async with listener:
        own = "{}:{}".format(*listener.sockets[0].getsockname())
        if not await asyncio.to_thread(webbrowser.open, f"http://{own}/"):
            return False
        try:
            await asyncio.wait_for(came.wait(), BROWSER_S)
        except TimeoutError:
            return False
    return True


def _host(asked: bytes) -> str:
    """By which name it was asked: a page of another site may have its own name lead to this machine."""
    named = [line.partition(b":")[2].strip() for line in asked.split(b"\r\n") if line.lower().startswith(b"host:")]
    return named[0].decode("latin-1") if len(named) == 1 else ""


def _is_ours(writer: asyncio.StreamWriter) -> bool:
    """Whether the kernel says that the caller is of this account; where it says nothing of anybody, it is."""
    account = account_of_transport(writer.transport)
    return account in (os.geteuid(), 0) if sys.platform == "linux" else True
