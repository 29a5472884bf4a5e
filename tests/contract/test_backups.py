"""A copy of a store says what it really has, and is restored only if it is whole and of a schema that is known. SE-7"""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from mendflow.core.model.errors import InvalidRequest
from mendflow.stores import backup
from mendflow.stores.sqlite.migrations import NEWEST
from mendflow.stores.sqlite.store import SqliteStore

STORED = Path("ab") / ("c" * 62)


@pytest.fixture
async def data(tmp_path: Path) -> Path:
    """A data folder with a store and one stored file."""
    folder = tmp_path / "data"
    (folder / backup.FILES / STORED).parent.mkdir(parents=True)
    (folder / backup.FILES / STORED).write_bytes(b"an output")
    store = SqliteStore(folder / "store.db")
    await store.open()
    await store.close()
    return folder


def change_schema(store: Path, statement: str) -> None:
    with closing(sqlite3.connect(store)) as connection, connection:
        connection.execute(statement)


def test_a_copy_that_is_whole_is_restored_with_its_files(data: Path, tmp_path: Path) -> None:  # SE-7
    made = backup.back_up_sqlite(data / "store.db", tmp_path / "copy", "1.0")
    assert (made.schema, made.files, made.file_bytes) == (NEWEST, 1, 9)
    assert backup.restore_sqlite(tmp_path / "copy", tmp_path / "new" / "store.db") == made
    assert (tmp_path / "new" / backup.FILES / STORED).read_bytes() == b"an output"


@pytest.mark.parametrize("lost", ["all", "one", "the end of one"])
def test_a_copy_without_its_files_is_refused(data: Path, tmp_path: Path, lost: str) -> None:  # SE-7
    copy = tmp_path / "copy"
    backup.back_up_sqlite(data / "store.db", copy, "1.0")
    if lost == "all":
        shutil.rmtree(copy / backup.FILES)
    elif lost == "one":
        (copy / backup.FILES / STORED).unlink()
    else:
        (copy / backup.FILES / STORED).write_bytes(b"an out")
    with pytest.raises(InvalidRequest, match="was made with 1 of 9"):
        backup.restore_sqlite(copy, tmp_path / "new" / "store.db")
    assert not (tmp_path / "new").exists()


def test_a_copy_says_which_schema_it_has(data: Path, tmp_path: Path) -> None:  # SE-7
    change_schema(data / "store.db", "DELETE FROM schema_version WHERE number > 1")
    assert backup.back_up_sqlite(data / "store.db", tmp_path / "copy", "1.0").schema == 1


def test_a_copy_of_a_newer_schema_is_refused(data: Path, tmp_path: Path) -> None:  # SE-7
    change_schema(data / "store.db", "INSERT INTO schema_version VALUES (999, 'later')")
    backup.back_up_sqlite(data / "store.db", tmp_path / "copy", "9.9")
    told = rf"schema 999, made by mendflow 9\.9; this one knows up to {NEWEST}"
    with pytest.raises(InvalidRequest, match=told):
        backup.restore_sqlite(tmp_path / "copy", tmp_path / "new" / "store.db")
    assert not (tmp_path / "new").exists()


def test_a_copy_in_another_kind_of_store_is_refused_first(data: Path, tmp_path: Path) -> None:  # SE-7
    made = backup.back_up_sqlite(data / "store.db", tmp_path / "copy", "1.0")
    other = msgspec.structs.replace(made, kind="postgresql", schema=999)
    (tmp_path / "copy" / backup.DESCRIPTION).write_bytes(msgspec.json.encode(other))
    with pytest.raises(InvalidRequest, match="is of a store in postgresql"):
        backup.restore_sqlite(tmp_path / "copy", tmp_path / "new" / "store.db")
