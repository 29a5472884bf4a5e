"""What a server knows of a cache: after any losses, what it believes to be the latest version is what is there."""

from hypothesis import given
from hypothesis import strategies as st

from mendflow.core.model.data import CACHE_FILES_MAX, CachedFile
from mendflow.pilot.cache import changes as module
from mendflow.pilot.cache.changes import ChangeLog

names = st.sampled_from("abcdef")
steps = st.lists(
    st.one_of(
        st.tuples(st.just("change"), names),
        st.tuples(st.just("tell"), st.booleans()),
        st.tuples(st.just("server restarts"), st.none()),
        st.tuples(st.just("pilot restarts"), st.none()),
    ),
    max_size=60,
)


class Believing:
    """A server, as far as the contract wants it: it uses news that begin where its knowledge ends, and no other."""

    def __init__(self) -> None:
        self.version = 0
        self.files: dict[str, int] = {}

    def set_neighbours(self, version: int, base: int, added: list[CachedFile], gone: list[str]) -> None:
        if base and base != self.version:
            return
        if not base:
            self.files.clear()
        for digest in gone:
            self.files.pop(digest, None)
        self.files.update((file.sha256, file.bytes) for file in added)
        self.version = version


@given(steps=steps, remembered=st.integers(1, 8))
def test_whoever_knows_the_version_knows_the_files(steps: list[tuple[str, object]], remembered: int) -> None:  # PJ-6
    module.CHANGES_MAX, usual = remembered, module.CHANGES_MAX
    try:
        server, files, starts = Believing(), dict[str, int](), 1
        news = ChangeLog(starts << 32)
        for step, detail in steps:
            if step == "change":
                name = str(detail)
                if name in files:
                    del files[name]
                    news.gone(name)
                else:
                    files[name] = ord(name)
                    news.added(name, ord(name))
            elif step == "tell":
                told = news.since(server.version)
                if detail:
                    server.set_neighbours(news.version, *told)
            elif step == "server restarts":
                server = Believing()
            else:
                starts += 1
                news = ChangeLog(starts << 32)
                for name, size in files.items():
                    news.added(name, size)
            assert server.version != news.version or server.files == files
        server.set_neighbours(news.version, *news.since(server.version))
        assert server.version == news.version and server.files == files, "one exchange is enough"
    finally:
        module.CHANGES_MAX = usual


def test_changes_of_one_file_are_told_as_what_came_of_them() -> None:
    news = ChangeLog(1)
    news.added("a", 1)
    seen = news.version
    news.gone("a")
    news.added("a", 1)
    news.added("b", 2)
    news.gone("b")
    assert news.since(seen) == (seen, [CachedFile("a", 1)], ["b"])


def test_of_a_cache_with_very_many_files_the_newest_are_told() -> None:
    log = ChangeLog(1)
    for number in range(CACHE_FILES_MAX + 5):
        log.added(f"{number:064x}", 1)
    base, added, gone = log.since(0)
    assert (base, len(added), gone) == (0, CACHE_FILES_MAX, [])
    assert [added[0].sha256, added[-1].sha256] == [f"{5:064x}", f"{CACHE_FILES_MAX + 4:064x}"]
