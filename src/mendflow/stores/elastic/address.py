"""Where an Elasticsearch or OpenSearch store is, from one URL:

    elasticsearch://host:9200/prefix
    elasticsearch+https://user:password@one:9200,two:9200/prefix?ca=/etc/ssl/our-ca.pem

Every host is a door to the same cluster. Options: `ca` is a file of certificates to trust; `api_key` stands in for user
and password; `copies` is on how many nodes each document is, two where there are two by default; `patience` is for
how many seconds to try again while the cluster is away; `history_days` is after how many days entries of streams move
to the index of their month. What is secret is in here and in the request's header, and in no text: neither in what this
prints as, nor in any sentence about it."""

import math
import re
from urllib.parse import parse_qsl, unquote

import msgspec

from mendflow.core.model.errors import InvalidRequest
from mendflow.stores.url_parts import split

PORT = 9200
PATIENCE_S = 30.0
HISTORY_DAYS = 30
OPTIONS = ("ca", "api_key", "copies", "patience", "history_days")
_SCHEMES = {"elasticsearch": "http", "elasticsearch+https": "https"}
_PREFIX = re.compile(r"[a-z0-9][a-z0-9_.-]{0,99}\Z")
_HOST = re.compile(r"(?P<name>[A-Za-z0-9_.-]+|\[[0-9A-Fa-f:.]+\])(?::(?P<port>[0-9]{1,5}))?\Z")


class ElasticAddress(msgspec.Struct, frozen=True, kw_only=True):
    hosts: tuple[str, ...]  # with scheme and port
    prefix: str
    user: str = ""
    password: str = ""
    api_key: str = ""
    ca: str = ""
    copies: int = 0  # 0: two where the cluster has more than one node
    patience_s: float = PATIENCE_S
    history_days: int = HISTORY_DAYS

    def __repr__(self) -> str:
        return f"{', '.join(host.split('://')[1] for host in self.hosts)} ({self.prefix})"

    __str__ = __repr__


def parse(url: str) -> ElasticAddress:
    """Parses the address. Raises with what is wrong, without repeating secrets."""
    try:
        parts = split(url)
    except ValueError as error:
        raise _wrong(str(error)) from None
    scheme = _SCHEMES.get(parts.scheme)
    if scheme is None:
        raise _wrong(f"it begins with {parts.scheme!r}: use {' or '.join(f'{name}://' for name in _SCHEMES)}")
    user, _, password = parts.login.partition(":")
    options = dict(parse_qsl(parts.query))
    unknown = sorted(options.keys() - set(OPTIONS))
    if unknown:
        raise _wrong(f"it has no option {unknown[0]!r}: there are {', '.join(OPTIONS)}")
    return ElasticAddress(
        hosts=tuple(_host(scheme, place) for place in parts.places.split(",")),
        prefix=_prefix(parts.path.strip("/")),
        user=unquote(user),
        password=unquote(password),
        api_key=options.get("api_key", ""),
        ca=options.get("ca", ""),
        copies=int(_number("copies", options.get("copies", "0"))),
        patience_s=_number("patience", options.get("patience", str(PATIENCE_S))),
        history_days=int(_number("history_days", options.get("history_days", str(HISTORY_DAYS)))),
    )


def _host(scheme: str, place: str) -> str:
    found = _HOST.match(place)
    if found is None:
        raise _wrong(f"{place!r} is not a host: give host:port, several with commas between them")
    return f"{scheme}://{found['name']}:{found['port'] or PORT}"


def _prefix(path: str) -> str:
    prefix = path or "mendflow"
    if _PREFIX.match(prefix) is None:
        raise _wrong(f"{path!r} cannot begin the names of indices: use small letters, digits, _ and -")
    return prefix


def _number(name: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number < 1e6:
        raise _wrong(f"{name}={text} is not a valid number")
    return number


def _wrong(what: str) -> InvalidRequest:
    return InvalidRequest(f"the address of the Elasticsearch store is wrong: {what}", field="store")
