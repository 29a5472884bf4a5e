"""Caches of pilots on several machines of a site: a file goes to who can sign for it, and to nobody else."""

import http.client
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from mendflow.core.model.data import Neighbour
from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.ids import PilotId
from mendflow.pilot.cache.contract import CacheOrigin
from mendflow.pilot.cache.server import CacheServer
from mendflow.pilot.cache.shared import CacheOptions, SharedCache
from mendflow.pilot.cache.signatures import signature
from mendflow.pilot.cache.site_sharing import SiteSharing
from tests.patience import PATIENCE_S
from tests.pilot.cache.files import bringing, digest_of, fill, never, read

SITE = CacheOptions(space_bytes=1 << 24, threshold_bytes=0, share="site", address="127.0.0.1")


@pytest.fixture
def pilots(tmp_path: Path) -> Iterator[list[SharedCache]]:
    made = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        made.append(SharedCache(tmp_path / name, SITE, host=name, first_version=1))
        made[-1].serve("http://127.0.0.1:1")
    for cache, other in ((made[0], made[1]), (made[1], made[0])):
        cache.set_neighbours([neighbour(other)], mark=1)
    yield made
    for cache in made:
        cache.close()


def neighbour(cache: SharedCache, *, key: str = "") -> Neighbour:
    news = cache.news(0)
    assert news is not None
    return Neighbour(PilotId("other"), "elsewhere", "", news.address, key or news.key)


def ask(address: str, digest: str, tag_process: str | None) -> tuple[int, bytes]:
    host, _, port = address.rpartition(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=5)
    try:
        connection.request("GET", f"/cache/{digest}")
        challenged = connection.getresponse()
        challenged.read()
        if tag_process is None:
            return challenged.status, b""
        challenge = challenged.headers["WWW-Authenticate"].removeprefix("Mendflow ")
        headers = {"Authorization": f"Mendflow {signature(tag_process, challenge, digest)}"}
        connection.request("GET", f"/cache/{digest}", headers=headers)
        answer = connection.getresponse()
        first = (answer.status, answer.read())
        connection.request("GET", f"/cache/{digest}", headers=headers)
        assert connection.getresponse().status == 401, "a signature is good for one request"
        return first
    finally:
        connection.close()


def test_a_file_comes_from_another_host_of_the_site(pilots: list[SharedCache]) -> None:  # PJ-11
    content = bytes(range(256)) * 5_000
    digest = fill(pilots[0].disk, content)
    pilots[1].disk.pin(digest)
    entry = pilots[1].disk.take_in(digest, never, size=len(content))
    assert entry.origin is CacheOrigin.SHARED and Path(entry.path).read_bytes() == content
    assert read(pilots[1].disk, digest) == content


def test_what_no_neighbour_has_is_fetched(pilots: list[SharedCache]) -> None:
    digest = digest_of(b"new")
    pilots[1].disk.pin(digest)
    assert pilots[1].disk.take_in(digest, bringing(b"new")).origin is CacheOrigin.FETCHED


def test_pilots_that_want_the_same_file_at_once_do_not_wait_for_each_other(pilots: list[SharedCache]) -> None:
    digest, together = digest_of(b"new"), threading.Barrier(2)
    origins = []

    def fetch(target: str) -> None:
        together.wait(PATIENCE_S)  # each has asked the other before, and heard that it has nothing
        Path(target).write_bytes(b"new")

    def want(cache: SharedCache) -> None:
        cache.disk.pin(digest)
        origins.append(cache.disk.take_in(digest, fetch).origin)

    threads = [threading.Thread(target=want, args=(cache,)) for cache in pilots]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert origins == [CacheOrigin.FETCHED] * 2


def test_who_cannot_sign_gets_nothing(pilots: list[SharedCache]) -> None:
    digest = fill(pilots[0].disk, b"secret")
    news = pilots[0].news(0)
    assert news is not None
    assert ask(news.address, digest, news.key) == (200, b"secret")
    assert ask(news.address, digest, None) == (401, b"")
    assert ask(news.address, digest, "guessed") == (401, b"")
    pilots[1].set_neighbours([neighbour(pilots[0], key="guessed")], mark=2)
    pilots[1].disk.pin(digest)
    assert pilots[1].disk.take_in(digest, bringing(b"secret")).origin is CacheOrigin.FETCHED


@pytest.mark.parametrize(
    "request_line",
    [b"GET /etc/passwd HTTP/1.1", b"GET /cache/../pilot.json HTTP/1.1", b"PUT /cache/x HTTP/1.1", b"\0\1\2"],
)
def test_what_is_not_a_request_for_a_file_is_refused(pilots: list[SharedCache], request_line: bytes) -> None:
    news = pilots[0].news(0)
    assert news is not None
    host, _, port = news.address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=5) as line:
        line.sendall(request_line + b"\r\n\r\n")
        assert line.recv(100).startswith(b"HTTP/1.1 400 ")


def test_a_changed_file_is_not_served(pilots: list[SharedCache], tmp_path: Path) -> None:
    digest = fill(pilots[0].disk, b"content")
    path = tmp_path / "one" / digest
    path.chmod(0o644)
    path.write_bytes(b"c0ntent")
    news = pilots[0].news(0)
    assert news is not None
    assert ask(news.address, digest, news.key) == (404, b"")


def liar(answer: bytes) -> tuple[socket.socket, str]:
    """Somebody at a neighbour's address who answers every second request with these bytes."""
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        try:
            while True:
                line, _ = listening.accept()
                with line:
                    line.recv(4096)
                    line.sendall(b"HTTP/1.1 401 X\r\nWWW-Authenticate: Mendflow c\r\nContent-Length: 0\r\n\r\n")
                    line.recv(4096)
                    line.sendall(answer)
        except OSError:
            return

    threading.Thread(target=serve, daemon=True).start()
    return listening, f"127.0.0.1:{listening.getsockname()[1]}"


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nc0ntent",
        b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\ncont",
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n",
        b"nonsense",
        b"",
    ],
)
def test_what_a_neighbour_sends_is_hashed_and_one_that_sends_wrong_is_left_alone(
    pilots: list[SharedCache], tmp_path: Path, answer: bytes
) -> None:
    listening, address = liar(answer)
    with listening:
        pilots[1].set_neighbours([Neighbour(PilotId("liar"), "elsewhere", "", address, "key")], mark=2)
        digest = digest_of(b"content")
        pilots[1].disk.pin(digest)
        assert pilots[1].disk.take_in(digest, bringing(b"content")).origin is CacheOrigin.FETCHED
    assert read(pilots[1].disk, digest) == b"content"
    site = pilots[1].disk._sharers[1]
    assert isinstance(site, SiteSharing) and site._asking.worth_asking() == []
    assert [path.name for path in (tmp_path / "two").iterdir()] == [digest]


def test_a_file_that_is_being_sent_is_not_evicted(tmp_path: Path) -> None:
    (folder := tmp_path / "cache").mkdir()
    cache = SharedCache(folder, CacheOptions(space_bytes=1 << 26, threshold_bytes=0), host="h", first_version=1)
    content = bytes(1 << 25)
    digest = fill(cache.disk, content)
    serving = CacheServer(cache.disk, "127.0.0.1")
    try:
        with socket.create_connection(("127.0.0.1", serving.port), timeout=10) as line:
            line.sendall(f"GET /cache/{digest} HTTP/1.1\r\n\r\n".encode())
            challenge = line.recv(4096).decode().partition("Mendflow ")[2].split()[0]
            is_signature_valid = signature(serving.key, challenge, digest)
            line.sendall(
                f"GET /cache/{digest} HTTP/1.1\r\nAuthorization: Mendflow {is_signature_valid}\r\n\r\n".encode()
            )
            received = line.recv(1000)
            cache.disk.resize(0)
            assert cache.disk.digests() == {digest}
            left = len(content) - len(received.partition(b"\r\n\r\n")[2])
            while left:
                left -= len(line.recv(1 << 20))
        while cache.disk.digests():  # it goes when the one who sends it lets go of it
            pass
    finally:
        serving.close()


def test_only_one_that_shares_with_its_site_listens(tmp_path: Path) -> None:
    cache = SharedCache(tmp_path, CacheOptions(share="host"), host="h", first_version=1)
    cache.serve("http://127.0.0.1:1")
    news = cache.news(0)
    assert news is not None and (news.address, news.key) == ("", "") and news.folder == str(tmp_path)


def test_an_address_that_is_not_this_machines_is_refused_with_advice(tmp_path: Path) -> None:
    for address in ("192.0.2.1", "127.0.0.1:none", ":80"):
        cache = SharedCache(tmp_path, CacheOptions(share="site", address=address), host="h", first_version=1)
        with pytest.raises(InvalidRequest, match="--share-address"):
            cache.serve("http://127.0.0.1:1")
