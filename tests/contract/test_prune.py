"""On every store a prune removes what nobody refers to, and nothing else."""

from pathlib import Path

import pytest

from mendflow.stores.contract import Store
from mendflow.stores.files import FolderFileStore
from mendflow.stores.shared_files import FILE_KIND, SharedFileStore
from tests.services.retention.kit import Shelf, digest_of

pytestmark = pytest.mark.full


@pytest.mark.parametrize("shared", [False, True], ids=["files in a folder", "files in the store"])
async def test_a_prune_removes_what_nobody_refers_to_and_nothing_else(  # DU-6
    store: Store, tmp_path: Path, *, shared: bool
) -> None:
    folder = FolderFileStore(tmp_path / "files")
    folder.open()
    shelf = Shelf(store, SharedFileStore(store, folder) if shared else folder, tmp_path / "files")
    await shelf.keep("mine", "shared", "of a set")
    await shelf.case("f-1", files=["mine", "shared", "of a set"])
    await shelf.case("f-1.1")
    await shelf.case("f-2", files=["shared"], days_ago=1)
    await shelf.case("f-3", cached_from=["f-4"], days_ago=1)
    await shelf.case("f-4")
    await shelf.put("data-set", "s", {"files": [digest_of("of a set")]})
    shelf.hours_pass()
    view = await shelf.prune()
    assert (view.cases, view.files, view.later_files, view.spared) == (1, 1, 0, 1)
    assert await shelf.cases() == ["f-2", "f-3", "f-4"]
    assert await shelf.traces("f-1") == []
    assert await shelf.stored(["mine", "shared", "of a set"]) == {"shared", "of a set"}
    await shelf.keep("mine")
    assert await shelf.files.size(digest_of("mine")) == 4
    assert b"".join([chunk async for chunk in shelf.files.read(digest_of("mine"))]) == b"mine"
    await shelf.close()


async def test_of_one_who_asks_for_a_file_and_one_who_removes_it_only_one_succeeds(  # DU-6
    store: Store, tmp_path: Path
) -> None:
    one = SharedFileStore(store, FolderFileStore(tmp_path / "one"))
    other = SharedFileStore(store, FolderFileStore(tmp_path / "other"))
    one.open()
    other.open()
    await one.keep_many({digest_of("mine"): b"mine"})
    found = await store.get(FILE_KIND, digest_of("mine"))
    assert found is not None
    asked_at = 2**52
    swept = await other.sweep([digest_of("mine")], asked_at)
    assert (swept.removed, await one.size(digest_of("mine"))) == (1, None)
    await one.keep_many({digest_of("mine"): b"mine"})
    assert (await other.sweep([digest_of("mine")], 1)).in_use == [digest_of("mine")]
    assert await other.size(digest_of("mine")) == 4
