"""An input that can be had from several places: the first is tried, and a repair may choose another."""

import hashlib
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from mendflow.core.model.faults import Category
from mendflow.core.model.ids import ItemId
from mendflow.core.model.jobs import JobSpec, from_source, sources_of
from mendflow.core.model.values import FileRef, Value
from mendflow.pilot.agent.http import FileClient, ServerAddress
from mendflow.pilot.files.sources import InputSources, OpenElements, TransferSettings
from mendflow.pilot.files.staging_faults import StagingFailed
from mendflow.transfer.errors import BadFileUrl, TransferFailed
from tests.pilot.conftest import Pilot, Server
from tests.pilot.test_parts import kept, stage
from tests.transfer.web_server import web

Hire = Callable[..., Pilot]
CONTENT = b"the same everywhere"


class Mirror(ThreadingHTTPServer):
    """A place on the web, and what it was asked."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answers)
        self.content: dict[str, bytes] = {}
        self.cut = False
        self.asked: list[dict[str, str]] = []

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}{path}"


class Answers(BaseHTTPRequestHandler):
    server: Mirror

    def do_GET(self) -> None:
        self.server.asked.append(dict(self.headers))
        found = self.server.content.get(self.path)
        self.send_response(404 if found is None else 200)
        self.send_header("Content-Length", str(len(found or b"") + 10 * self.server.cut))
        self.end_headers()
        self.wfile.write(found or b"")

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def mirror() -> Iterator[Mirror]:
    with Mirror() as mirror:
        mirror.content["/a"] = CONTENT
        thread = threading.Thread(target=mirror.serve_forever)
        thread.start()
        yield mirror
        mirror.shutdown()
        thread.join()


def spec(**more: Value) -> JobSpec:
    return JobSpec(item=ItemId("i"), command="cat a; ls", **more)


async def test_another_replica_is_chosen_and_serves(
    server: Server, hire: Hire, tmp_path: Path, mirror: Mirror
) -> None:  # FM-8
    hire("--token", "sesame")
    server.ledger.token = "sesame"
    (tmp_path / "copy").write_bytes(CONTENT)
    ref = kept(CONTENT)
    replicas = {"a": (f"kept:{ref.sha256}", mirror.url("/gone"), mirror.url("/a"), str(tmp_path / "copy"))}
    job = spec(inputs={"a": ref}, replicas=replicas)
    tried = []
    while True:
        outcome = await server.outcome(await server.submit(job))
        if outcome.fault is None:
            break
        assert (outcome.fault.category, outcome.fault.file) == (Category.DATA, "a")
        tried.append(outcome.fault.data["source"])
        job = from_source(job, "a", outcome.fault.data["others"][0])
    assert tried == list(replicas["a"][:2]) and outcome.log_tail == CONTENT.decode() + "a\n"
    assert mirror.asked and not any("Authorization" in headers for headers in mirror.asked)
    assert (await server.outcome(await server.submit(from_source(job, "a", str(tmp_path / "copy"))))).ok


def test_what_comes_from_elsewhere_must_have_the_content_that_was_meant(tmp_path: Path, mirror: Mirror) -> None:  # FM-8
    staging, _ = stage(tmp_path)
    mirror.content["/other"] = b"something else"
    given = spec(inputs={"a": kept(CONTENT)}, replicas={"a": (mirror.url("/other"),)})
    with pytest.raises(StagingFailed, match="damaged, or is another file") as failure:
        staging.stage_in(given, str(tmp_path / "one"))
    assert failure.value.fault.data["source"] == mirror.url("/other")
    assert not list((tmp_path / "work" / "cache").iterdir())
    staging.stage_in(from_source(given, "a", mirror.url("/a")), str(tmp_path / "two"))
    assert (tmp_path / "two" / "a").read_bytes() == CONTENT


def test_an_input_that_is_nowhere_kept_is_taken_as_it_is(tmp_path: Path, mirror: Mirror) -> None:  # FM-8
    staging, shelf = stage(tmp_path, CONTENT)
    (tmp_path / "with space").write_bytes(b"local")
    replicas = {
        "deep/a": (mirror.url("/a"),),
        "b": ((tmp_path / "with space").as_uri(),),
        "c": (f"kept:{hashlib.sha256(CONTENT).hexdigest()}",),
    }
    staging.stage_in(spec(replicas=replicas), str(tmp_path / "one"))
    found = {path: (tmp_path / "one" / path).read_bytes() for path in replicas}
    assert found == {"deep/a": CONTENT, "b": b"local", "c": CONTENT} and len(shelf.asked) == 1


def test_sources_that_cannot_serve_say_why(tmp_path: Path, mirror: Mirror) -> None:
    sources = InputSources(FileClient(ServerAddress("http://127.0.0.1:1", "")), OpenElements())
    quick = TransferSettings(tries=1)
    target = str(tmp_path / "target")
    with pytest.raises(TransferFailed, match="404"):
        sources.fetch(mirror.url("/none"), target, None, quick)
    with pytest.raises(TransferFailed, match="No such file"):
        sources.fetch(str(tmp_path / "none"), target, None, quick)
    with pytest.raises(TransferFailed, match="no catalogue"):
        sources.fetch("lfn:/store/a", target, None, quick)
    with pytest.raises(TransferFailed) as away:
        sources.fetch("http://127.0.0.1:1/a", target, None, quick)
    assert away.value.passing
    mirror.cut = True
    with pytest.raises(TransferFailed, match=r"ended after|IncompleteRead"):
        sources.fetch(mirror.url("/a"), target, None, quick)
    for nonsense in ("", "relative/path", "gopher://x/a", "data:,hello", "javascript:1", "simplecache::http://x/a"):
        with pytest.raises(BadFileUrl, match="is not a place for a file"):
            sources.fetch(nonsense, target, None)
    for nonsense in ("kept:../../etc/passwd", "kept:", "kept:" + "Z" * 64):
        with pytest.raises(BadFileUrl, match="is no SHA-256"):
            sources.fetch(nonsense, target, None)


def test_a_job_one_of_whose_inputs_cannot_be_had_does_not_wait_for_the_others(tmp_path: Path) -> None:
    staging, _ = stage(tmp_path)
    content = bytes(20 << 20)
    with web(content) as slow:
        slow.slow_s, slow.piece_bytes = 0.05, 1 << 14
        replicas = {"a": (slow.url,), "b": (str(tmp_path / "none"),)}
        wanted = spec(inputs={"a": kept(content), "b": kept(b"b")}, replicas=replicas)
        with pytest.raises(StagingFailed) as failed:
            staging.stage_in(wanted, str(tmp_path / "attempt"))
        assert failed.value.fault.file == "b" and slow.sent < len(content) / 2


def test_no_password_of_a_source_is_in_a_fault(tmp_path: Path, mirror: Mirror) -> None:
    staging, _ = stage(tmp_path)
    port = mirror.server_address[1]
    catalogue = (f"http://me:hunter2@127.0.0.1:{port}/none?sig=abc", f"http://me:hunter3@127.0.0.1:{port}/b?sig=def")
    with pytest.raises(StagingFailed) as failure:
        staging.stage_in(spec(replicas={"a": catalogue}, transfer={"tries": 1}), str(tmp_path / "one"))
    told = msgspec.json.encode(failure.value.fault).decode()
    assert f"http://me@127.0.0.1:{port}/b?..." in told
    assert not any(secret in told for secret in ("hunter2", "hunter3", "abc", "def"))


def test_no_digest_of_a_job_becomes_a_path(tmp_path: Path) -> None:
    staging, _ = stage(tmp_path)
    (tmp_path / "secret").write_text("not yours")
    outside = "../../secret"
    for job in (
        spec(replicas={"a": (f"kept:{outside}",)}),
        spec(inputs={"a": FileRef(sha256=outside, bytes=9, name="a")}),
        spec(args=[{"$spilled": outside}]),
    ):
        with pytest.raises(StagingFailed, match="is no SHA-256") as failure:
            staging.stage_in(job, str(tmp_path / "work" / "attempts" / "one"))
        assert failure.value.fault.category is Category.INPUT


def test_other_parameters_of_the_transfer_are_heeded(tmp_path: Path, mirror: Mirror) -> None:  # FM-8
    staging, _ = stage(tmp_path)
    mirror.cut = True  # whatever it sends, it ends too soon
    given = spec(replicas={"a": (mirror.url("/a"),)})
    for tries in (1, 2):
        mirror.asked.clear()
        with pytest.raises(StagingFailed, match="could not be had"):
            staging.stage_in(replace(given, transfer={"tries": tries, "chunk_bytes": 1024}), str(tmp_path / "one"))
        assert len(mirror.asked) == tries
    for wrong in ({"tries": 0}, {"tries": "many"}, {"speed": 1}):
        with pytest.raises(StagingFailed, match="there are tries") as failure:
            staging.stage_in(replace(given, transfer=wrong), str(tmp_path / "one"))
        assert failure.value.fault.category is Category.INPUT


@given(st.lists(st.text("abc", min_size=1), min_size=1, unique=True))
def test_taking_the_next_one_again_and_again_goes_round_all(catalogue: list[str]) -> None:  # FM-8
    job = spec(replicas={"a": tuple(catalogue)})
    seen = []
    for _ in catalogue:
        seen.append(sources_of(job, "a")[0])
        others = sources_of(job, "a")[1:]
        job = from_source(job, "a", others[0]) if others else job
    assert sorted(seen) == sorted(catalogue) and sources_of(job, "a") == tuple(catalogue)


def test_a_place_that_was_not_known_may_be_chosen_too() -> None:  # FM-8
    job = from_source(spec(inputs={"a": kept(CONTENT)}), "a", "/new/place")
    assert sources_of(job, "a") == ("/new/place", f"kept:{kept(CONTENT).sha256}")
    assert sources_of(job, "b") == ()


def test_the_server_is_no_source_of_a_file_with_a_logical_name() -> None:  # FM-8
    job = spec(inputs={"a": replace(kept(CONTENT), logical="/store/a")})
    assert sources_of(job, "a") == ("lfn:/store/a",)
    assert sources_of(from_source(job, "a", "/new/place"), "a") == ("/new/place", "lfn:/store/a")
