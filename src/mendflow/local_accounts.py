"""Which account of this machine a connection over loopback comes from.

The kernel knows it: a connection within one machine has two sockets, and each belongs to the account that opened it. So
a server without tokens can tell its owner from the other accounts of a login node, and its owner sets up nothing: not
for commands, not for pilots, not for a browser.

Only a socket that is open in both directions says whose it is. What is left of one that its process has closed belongs,
for the kernel, to root."""

import pwd
import socket
import struct
from pathlib import Path
from typing import Any, Final

Address = tuple[str, int]

ACCOUNT_STATE: Final = "mendflow_account"
"""Where a connection keeps, in the state of its requests, which account it comes from."""

_SOCK_DIAG: Final = 4  # NETLINK_SOCK_DIAG
_BY_FAMILY: Final = 20  # SOCK_DIAG_BY_FAMILY
_REQUEST: Final = 1  # NLM_F_REQUEST
_ESTABLISHED: Final = 1
_NO_COOKIE: Final = 0xFFFFFFFF
_HEADER: Final = struct.Struct("=IHHII")
_QUERY: Final = struct.Struct("=BBBBI")
_PORTS: Final = struct.Struct("!HH")
_REST: Final = struct.Struct("=III")
_UID_AT: Final = _HEADER.size + 4 + 48 + 12
"""In an answer: the header, four bytes, the pair of addresses, three numbers, and then the account."""


def account_name(account: int) -> str:
    """The name of an account, or its number if it has none."""
    try:
        return pwd.getpwuid(account).pw_name
    except KeyError:
        return str(account)


def account_of(client: Address, server: Address) -> int | None:
    """The account whose process opened this connection, by the number that the kernel has for it; None if the kernel
    does not say."""
    try:
        return _ask_kernel(client, server)
    except OSError:
        return _look_up(client, server)


def _ask_kernel(client: Address, server: Address) -> int | None:
    """Ask for this one socket, whatever number of others there is."""
    family = socket.AF_INET6 if ":" in client[0] else socket.AF_INET
    ends = b"".join(socket.inet_pton(family, host).ljust(16, b"\0") for host, _ in (client, server))
    query = _QUERY.pack(family, socket.IPPROTO_TCP, 0, 0, 1 << _ESTABLISHED)
    query += _PORTS.pack(client[1], server[1]) + ends + _REST.pack(0, _NO_COOKIE, _NO_COOKIE)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG) as kernel:
        kernel.setblocking(False)  # the answer is there when the question has been sent
        kernel.send(_HEADER.pack(_HEADER.size + len(query), _BY_FAMILY, _REQUEST, 1, 0) + query)
        answer = kernel.recv(8192)
    if len(answer) < _UID_AT + 4 or _HEADER.unpack_from(answer)[1] != _BY_FAMILY:
        return None
    state = answer[_HEADER.size + 1]
    account: int = struct.unpack_from("=I", answer, _UID_AT)[0]
    return account if state == _ESTABLISHED else None


def _look_up(client: Address, server: Address) -> int | None:
    """Find the socket in the kernel's table, where it does not answer questions."""
    is_v6 = ":" in client[0]
    wanted = [_as_in_table(client, is_v6), _as_in_table(server, is_v6), f"{_ESTABLISHED:02X}"]
    try:
        table = Path("/proc/net/tcp6" if is_v6 else "/proc/net/tcp").read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        return None
    for line in table.splitlines()[1:]:
        words = line.split()
        if words[1:4] == wanted:
            return int(words[7])
    return None


def _as_in_table(address: Address, is_v6: bool) -> str:
    """An address as the table has it: words of four bytes, each in the order of this machine."""
    packed = socket.inet_pton(socket.AF_INET6 if is_v6 else socket.AF_INET, address[0])
    words = struct.unpack(f"={len(packed) // 4}I", packed)
    return "".join(f"{word:08X}" for word in words) + f":{address[1]:04X}"


def account_of_transport(transport: Any) -> int | None:
    """The account of a connection that was just accepted."""
    client, server = transport.get_extra_info("peername"), transport.get_extra_info("sockname")
    if not isinstance(client, tuple) or not isinstance(server, tuple):
        return None
    return account_of((client[0], client[1]), (server[0], server[1]))
