"""A store from its URL: the one place that knows which there are.

    sqlite:///var/lib/mendflow/store.db       a file; without a URL it is store.db in the data folder
    postgresql://user@host:5432/database      a database that several servers share
    elasticsearch+https://user@host:9200/name Elasticsearch or OpenSearch, shared as well
    memory://                                 gone with its process

Drivers are loaded only when they are asked for, because not every installation has them. A URL may hold a password: it
is never repeated in full."""

import importlib
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote

import msgspec

from mendflow.core.model.errors import InvalidRequest, StoreUnavailable
from mendflow.stores.contract import Store
from mendflow.stores.memory import MemoryStore
from mendflow.stores.sqlite.store import SqliteStore
from mendflow.stores.url_parts import UrlParts, split

STORE_FILE = "store.db"


class StoreLocation(msgspec.Struct, frozen=True, kw_only=True):
    """`shared`: several servers may use it at once. `shown` is for people, without secrets. `file` is the store's own
    file, which an open store locks."""

    store: Store
    shown: str
    shared: bool = False
    file: Path | None = None


def store_at(url: str, data: Path) -> StoreLocation:
    """The store that a URL names, not open yet; without a URL the file in the data folder. Raises InvalidRequest with
    the reason."""
    if not url:
        return _sqlite_at(data / STORE_FILE)
    try:
        parts = split(url)
    except ValueError:
        raise InvalidRequest(
            "the store's URL cannot be read: check its brackets, and write special characters as %XX"
        ) from None
    found = _KNOWN.get(parts.scheme)
    if found is None:
        raise InvalidRequest(f"{_begin(url)} is not the URL of a store: {_advice(parts.scheme)}")
    return found(url, parts)


def has_password(url: str) -> bool:
    """Whether a URL contains a password, which should not be visible in a process list."""
    try:
        return bool(split(url).login.partition(":")[2])
    except ValueError:
        return False


def _sqlite(url: str, parts: UrlParts) -> StoreLocation:
    path = unquote(parts.path)
    if parts.netloc or not path.strip("/") or parts.query:
        raise InvalidRequest(
            f"{url!r} names no file: write sqlite:///absolute/path/store.db, or sqlite:relative/store.db"
        )
    place = Path(path).absolute()
    return _sqlite_at(place / STORE_FILE if place.is_dir() else place)


def _sqlite_at(path: Path) -> StoreLocation:
    return StoreLocation(store=SqliteStore(path), shown=f"sqlite://{path}", file=path)


def _memory(_: str, parts: UrlParts) -> StoreLocation:
    if parts.netloc or parts.path or parts.query:
        raise InvalidRequest("a store in memory has no address: write memory://")
    return StoreLocation(store=MemoryStore(), shown="memory://")


def _postgresql(url: str, parts: UrlParts) -> StoreLocation:
    return _by_driver("mendflow.stores.postgresql.store", "PostgresqlStore", url, parts, "mendflow[postgresql]")


def _elastic(url: str, parts: UrlParts) -> StoreLocation:
    return _by_driver("mendflow.stores.elastic.store", "ElasticStore", url, parts, "mendflow")


def _by_driver(module: str, name: str, url: str, parts: UrlParts, install: str) -> StoreLocation:
    try:
        kind = getattr(importlib.import_module(module), name)
    except ImportError as error:
        raise StoreUnavailable(
            f"the driver for {parts.scheme}:// is not installed ({error}): pip install '{install}'", install=install
        ) from error
    store: Store = kind.from_url(url)
    return StoreLocation(store=store, shown=f"{parts.scheme}://{parts.places}{parts.path}", shared=True)


_KNOWN: dict[str, Callable[[str, UrlParts], StoreLocation]] = {
    "sqlite": _sqlite,
    "memory": _memory,
    "postgresql": _postgresql,
    "postgres": _postgresql,
    "elasticsearch": _elastic,
    "elasticsearch+https": _elastic,
}


def _begin(url: str) -> str:
    """As much of a URL as may be shown: the part before its address."""
    scheme, colon, _ = url.partition(":")
    return repr(f"{scheme}:...") if colon else repr(url)


def _advice(scheme: str) -> str:
    if scheme in ("http", "https", "opensearch", "elastic"):
        return "for Elasticsearch and OpenSearch write elasticsearch://host:9200, or elasticsearch+https://host:9200"
    if scheme == "":
        return "for a file write sqlite:///absolute/path/store.db"
    return f"it must start with one of {', '.join(f'{name}://' for name in _KNOWN)}"
