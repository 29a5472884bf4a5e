"""Which store a URL names, and what is said of one that names none: never the password."""

import sys
from pathlib import Path

import pytest

from mendflow.core.model.errors import InvalidRequest, StoreUnavailable
from mendflow.stores.elastic.store import ElasticStore
from mendflow.stores.memory import MemoryStore
from mendflow.stores.postgresql.address import read_address
from mendflow.stores.postgresql.store import PostgresqlStore
from mendflow.stores.sqlite.store import SqliteStore
from mendflow.stores.urls import has_password, store_at


@pytest.mark.parametrize(
    ("url", "kind", "shared", "shown"),
    [
        ("sqlite:///tmp/some/store.db", SqliteStore, False, "sqlite:///tmp/some/store.db"),
        ("memory://", MemoryStore, False, "memory://"),
        ("postgresql://me:secret@db:5433/flows", PostgresqlStore, True, "postgresql://db:5433/flows"),
        ("postgres://db/flows", PostgresqlStore, True, "postgres://db/flows"),
        ("postgresql:///flows", PostgresqlStore, True, "postgresql:///flows"),
        ("elasticsearch://es:9200/flows", ElasticStore, True, "elasticsearch://es:9200/flows"),
        ("elasticsearch+https://me:secret@es:9200", ElasticStore, True, "elasticsearch+https://es:9200"),
    ],
)
def test_each_url_names_its_store(url: str, kind: type, shared: bool, shown: str, tmp_path: Path) -> None:
    located = store_at(url, tmp_path)
    assert isinstance(located.store, kind)
    assert (located.shared, located.shown) == (shared, shown)


def test_without_a_url_the_store_is_in_the_data_folder(tmp_path: Path) -> None:
    located = store_at("", tmp_path)
    assert isinstance(located.store, SqliteStore) and located.file == tmp_path / "store.db"


def test_a_sqlite_url_may_name_a_folder_or_a_place_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert store_at(f"sqlite://{tmp_path}", tmp_path).file == tmp_path / "store.db"
    monkeypatch.chdir(tmp_path)
    assert store_at("sqlite:here.db", tmp_path / "elsewhere").file == tmp_path / "here.db"
    assert store_at("sqlite:///tmp/a%20b.db", tmp_path).file == Path("/tmp/a b.db")


@pytest.mark.parametrize(
    ("url", "advice"),
    [
        ("mysql://me:secret@db/flows", "it must start with one of sqlite://"),
        ("https://me:secret@es:9200", "write elasticsearch://host:9200"),
        ("/var/lib/store.db", "for a file write sqlite:///absolute/path/store.db"),
        ("sqlite://", "names no file"),
        ("sqlite:///", "names no file"),
        ("sqlite://host/path", "names no file"),
        ("memory://here", "write memory://"),
        ("postgresql://me:secret@db", "names no database"),
        ("postgresql://me:secret@db:port/flows", "cannot be read"),
        ("postgresql://me:secret%zz@db/flows", "cannot be read"),
        ("postgresql://me:secret@db/flows?sslmod=require", "no option 'sslmod'; did you mean 'sslmode'?"),
        ("postgresql://me:secret@db/flows?patience=long", "patience must be a number of seconds above 0, not 'long'"),
        ("postgresql://me:secret@db/flows?patience=0", "patience must be a number of seconds above 0"),
        ("postgresql://me:secret@[db/flows", "cannot be read"),
        ("elasticsearch://me:secret@es/Big", "Elasticsearch store is wrong"),
    ],
)
def test_what_is_wrong_with_a_url_is_said_without_its_password(url: str, advice: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest) as told:
        store_at(url, tmp_path)
    assert advice in told.value.message
    assert "secret" not in told.value.message and "secret" not in repr(told.value)


def test_a_driver_that_is_not_installed_is_named_with_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("mendflow.stores.postgresql")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(StoreUnavailable, match=r"pip install 'mendflow\[postgresql\]'"):
        store_at("postgresql://db/flows", tmp_path)


def test_what_the_driver_knows_passes_through_and_ours_does_not() -> None:
    address = read_address(
        "postgresql://me:secret@one:5432,two:5433/flows?sslmode=verify-full&sslrootcert=/ca.pem&schema=it&patience=2.5"
    )
    assert "sslmode=verify-full" in address.conninfo and "sslrootcert=/ca.pem" in address.conninfo
    assert "schema" not in address.conninfo and "patience" not in address.conninfo
    assert (address.schema, address.patience_s) == ("it", 2.5)
    assert address.shown == "postgresql://me@one:5432,two:5433/flows (schema it)"
    assert "secret" in address.conninfo and "secret" not in repr(address)


def test_a_password_in_a_url_is_noticed() -> None:
    assert has_password("postgresql://me:secret@db/flows")
    assert not has_password("postgresql://me@db/flows") and not has_password("") and not has_password("x://[")
