"""The stores that the contract suite runs on. A new store is one class here and one line at the end; no test changes.

A backend is what a store stands on, ready for use: nothing, a folder, or a server that was started for the tests. It
gives stores by place: the same folder again gives the same documents, and other folders know nothing of them."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import ClassVar, Protocol

from mendflow.stores.contract import Store
from mendflow.stores.memory import MemoryStore
from mendflow.stores.postgresql.store import PostgresqlStore
from mendflow.stores.sqlite.store import SqliteStore
from tests.servers.postgresql import PostgresqlServer, postgresql_server


class Backend(ABC):
    @abstractmethod
    def make(self, place: Path) -> Store: ...


class Durable(Backend):
    """What is written outlives the process that wrote it. `source` is Python that makes the same store as `make`, under
    the name `store`."""

    @abstractmethod
    def source(self, place: Path) -> str: ...


class Server(Protocol):
    """A server that keeps what it acknowledged when it is killed. Both return when it is so."""

    port: int  # on 127.0.0.1, the same before and after

    def kill(self) -> None: ...
    def start(self) -> None: ...


class Remote(Durable):
    """A store on a server, which several of ours may use at once. `patience_s`: how long to try again; `port`: where to
    find the server, if not where it is."""

    server: Server

    @abstractmethod
    def reach(self, place: Path, *, patience_s: float, port: int = 0) -> Store: ...

    def make(self, place: Path) -> Store:
        return self.reach(place, patience_s=20)


class LastSeenItems(Backend):
    def make(self, place: Path) -> Store:
        return MemoryStore()


class Sqlite(Durable):
    def make(self, place: Path) -> Store:
        return SqliteStore(place / "store.db")

    def source(self, place: Path) -> str:
        return f"from mendflow.stores.sqlite.store import SqliteStore\nstore = SqliteStore({str(place / 'store.db')!r})"


class Postgresql(Remote):
    server: PostgresqlServer

    def __init__(self, server: PostgresqlServer) -> None:
        self.server = server

    def reach(self, place: Path, *, patience_s: float, port: int = 0) -> Store:
        return PostgresqlStore.from_url(self._url(place, patience_s, port))

    def source(self, place: Path) -> str:
        url = self._url(place, 20)
        return (
            f"from mendflow.stores.postgresql.store import PostgresqlStore\nstore = PostgresqlStore.from_url({url!r})"
        )

    def _url(self, place: Path, patience_s: float, port: int = 0) -> str:
        at = self.server.url_at(port or self.server.port)
        return f"{at}?schema={name_of(place)}&patience={patience_s}"


class Given:
    """How a backend comes to be, and what it can do, which must be known before it is there."""

    KNOWN: ClassVar[dict[str, "Given"]] = {}

    def __init__(self, name: str, kind: type[Backend], make: Callable[[Path], AbstractContextManager[Backend]]) -> None:
        self.name = name
        self.kind = kind
        self.make = make  # given an empty folder; ends the servers when it is left
        self.KNOWN[name] = self


def names(kind: type) -> list[str]:
    """The backends that can do what this kind can."""
    return [given.name for given in Given.KNOWN.values() if issubclass(given.kind, kind)]


def name_of(place: Path) -> str:
    """A short plain name for a place, for servers that have no folders."""
    return "t" + hashlib.sha256(str(place).encode()).hexdigest()[:16]


@contextmanager
def _memory(folder: Path) -> Iterator[Backend]:
    yield LastSeenItems()


@contextmanager
def _sqlite(folder: Path) -> Iterator[Backend]:
    yield Sqlite()


@contextmanager
def _postgresql(folder: Path) -> Iterator[Backend]:
    with postgresql_server() as server:
        yield Postgresql(server)


Given("memory", LastSeenItems, _memory)
Given("sqlite", Sqlite, _sqlite)
Given("postgresql", Postgresql, _postgresql)
