"""The address of a PostgreSQL store: parsed from its URL, shown without its password.

All options of the driver may be in the URL (sslmode, sslrootcert, several hosts); `schema` and `patience` are ours."""

from collections.abc import Iterable
from difflib import get_close_matches
from math import inf
from urllib.parse import parse_qsl, quote, urlencode

import msgspec
from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import Conninfo

from mendflow.core.model.errors import InvalidRequest
from mendflow.stores.url_parts import split

DEFAULT_SCHEMA = "mendflow"
DEFAULT_PATIENCE_S = 5.0
FORM = "postgresql://USER@HOST:PORT/DATABASE"


class PostgresqlAddress(msgspec.Struct, frozen=True, kw_only=True):
    """`conninfo` is for the driver and has the password, if any; `shown` is for people and has none."""

    conninfo: str
    shown: str
    schema: str = DEFAULT_SCHEMA
    patience_s: float = DEFAULT_PATIENCE_S

    def __repr__(self) -> str:
        return f"Address({self.shown})"


def read_address(url: str) -> PostgresqlAddress:
    """The address in a URL. Errors do not repeat the URL, which may contain a password."""
    try:
        parts = split(url)
        asked = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
        schema, patience_s = asked.pop("schema", DEFAULT_SCHEMA), _patience_s(asked.pop("patience", ""))
        _demand_known(asked)
        bare = f"postgresql://{parts.netloc}{parts.path}?{urlencode(asked, quote_via=quote)}"
        known = {name: value for name, value in conninfo_to_dict(bare).items() if value is not None}
        hosts, ports = str(known.get("host", "")).split(","), str(known.get("port", "")).split(",")
        _ = [int(port) for port in ports if port]
    except (ValueError, ProgrammingError):
        raise InvalidRequest(
            f"the store's URL cannot be read: write {FORM}, with special characters of a password as %XX"
        ) from None
    if not known.get("dbname"):
        raise InvalidRequest(f"the store's URL names no database: write {FORM}")
    if not schema or len(schema.encode()) > 63:
        raise InvalidRequest("the store's URL: schema must be a name of up to 63 letters")
    places = ",".join(f"{host}:{ports[min(n, len(ports) - 1)]}".rstrip(":") for n, host in enumerate(hosts))
    user = f"{known['user']}@" if known.get("user") else ""
    more = f" (schema {schema})" if schema != DEFAULT_SCHEMA else ""
    settings = {
        "application_name": "mendflow",
        "connect_timeout": "5",
        "keepalives_idle": "10",
        "keepalives_interval": "5",
        "keepalives_count": "3",
        "target_session_attrs": "read-write",  # reads must see what was written, so a replica will not do
        **known,
    }
    return PostgresqlAddress(
        conninfo=make_conninfo("", **settings),
        shown=f"postgresql://{user}{places}/{known['dbname']}{more}",
        schema=schema,
        patience_s=patience_s,
    )


def _patience_s(text: str) -> float:
    try:
        patience_s = float(text) if text else DEFAULT_PATIENCE_S
    except ValueError:
        patience_s = 0
    if not 0 < patience_s < inf:
        raise InvalidRequest(f"the store's URL: patience must be a number of seconds above 0, not {text[:40]!r}")
    return patience_s


def _demand_known(asked: Iterable[str]) -> None:
    """Check that every option is ours or the driver's. Errors do not repeat values: one may be a password."""
    known = ["schema", "patience", *(option.keyword.decode() for option in Conninfo.get_defaults())]
    for name in asked:
        if name not in known:
            near = get_close_matches(name, known, 1)
            meant = f"did you mean {near[0]!r}?" if near else "ours are schema and patience, all others are libpq's"
            raise InvalidRequest(f"the store's URL: there is no option {name[:40]!r}; {meant}")
