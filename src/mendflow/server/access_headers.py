"""The headers that access is decided by, and those by which servers tell each other about a request."""

from collections.abc import Iterable
from typing import Final

from mendflow.core.model.errors import InvalidRequest

FORWARDED_HEADER: Final = b"x-mendflow-passed-on"
"""The header by which a server tells another that it forwards a request; its value is the servers' own token."""
APPLICATION_HEADER: Final = b"x-mendflow-application"
"""The header by which a server tells another what they call something that they do together. Nobody else is heard."""
ADMITTED_HEADER: Final = b"x-mendflow-admitted"
"""The header by which a server tells another how it admitted a request that it forwards. Nobody else is heard."""
ADMITTED_STATE: Final = "mendflow_admitted"
"""The same, in the state of a request."""
ADMITTED_BY_ACCOUNT: Final = b"account"
OF_SERVERS: Final = frozenset({FORWARDED_HEADER, APPLICATION_HEADER, ADMITTED_HEADER})

_ACCESS_HEADERS: Final = frozenset(
    {b"authorization", b"host", b"origin", b"sec-fetch-site", b"x-mendflow-user", FORWARDED_HEADER, ADMITTED_HEADER}
)


def access_headers(headers: Iterable[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """The headers that access is decided by. A header that is sent twice is refused: a proxy in front of this server
    could read the other value."""
    sent: dict[bytes, bytes] = {}
    for name, value in headers:
        if name in _ACCESS_HEADERS:
            if name in sent:
                raise InvalidRequest(f"the header {name.decode('latin-1')} was sent twice; send it once")
            sent[name] = value
    return sent


def application_of(headers: Iterable[tuple[bytes, bytes]]) -> str:
    """What servers call that which they do together, if a server says so here."""
    return next((value.decode("latin-1") for name, value in headers if name == APPLICATION_HEADER), "")
