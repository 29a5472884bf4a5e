"""Files from web servers: with ranges, without, and cut."""  # FM-6

import base64
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from mendflow.core.model.data import StorageElement
from mendflow.core.model.values import FileRef
from mendflow.transfer import fetch as fetching
from mendflow.transfer.element import StorageClient
from mendflow.transfer.errors import TransferFailed
from tests.transfer.web_server import Web, web

CONTENT = os.urandom(300_000)
REF = FileRef(sha256=hashlib.sha256(CONTENT).hexdigest(), bytes=len(CONTENT), name="file")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    monkeypatch.setattr(fetching, "PAUSE_S", 0.0)
    with web(CONTENT) as server:
        yield server


def element(server: Web, **more: int) -> StorageClient:
    return StorageClient(StorageElement(name="web", url=server.url, tries=more.get("tries", 4), chunk_bytes=10_000))


def test_each_byte_is_sent_once_however_often_the_line_is_cut(server: Web, tmp_path: Path) -> None:
    server.cut = [1, 100_000, 70_001]
    element(server).fetch(server.url, str(tmp_path / "file"), REF)
    assert (tmp_path / "file").read_bytes() == CONTENT and server.sent == len(CONTENT)
    assert [each.get("Range") for each in server.asked] == [None, "bytes=1-", "bytes=100001-", "bytes=170002-"]


def test_a_server_without_ranges_sends_all_of_it_again(server: Web, tmp_path: Path) -> None:
    server.ranges, server.cut = False, [100_000]
    element(server).fetch(server.url, str(tmp_path / "file"), REF)
    assert (tmp_path / "file").read_bytes() == CONTENT


def test_what_is_longer_than_the_file_is_brought_anew(server: Web, tmp_path: Path) -> None:
    """The size is not known here: the server says that there is nothing from there on."""
    (tmp_path / "file.part").write_bytes(b"?" * 400_000)
    unsized = FileRef(sha256=REF.sha256, bytes=-1, name="file")
    element(server).fetch(server.url, str(tmp_path / "file"), unsized)
    assert (tmp_path / "file").read_bytes() == CONTENT


@pytest.mark.parametrize(("status", "asked"), [(404, 1), (403, 1), (503, 3), (429, 3)])
def test_only_what_may_pass_is_tried_again(server: Web, tmp_path: Path, status: int, asked: int) -> None:
    server.status = status
    with pytest.raises(TransferFailed, match=f"it answered {status}") as failure:
        element(server, tries=3).fetch(server.url, str(tmp_path / "file"), REF)
    assert len(server.asked) == asked and failure.value.passing is (asked > 1)


def test_it_can_be_reached_as_long_as_somebody_answers(server: Web) -> None:
    server.status = 405
    element(server).reach()
    with pytest.raises(TransferFailed):
        StorageClient(StorageElement(name="web", url="http://127.0.0.1:1/x")).reach()


@pytest.mark.full
def test_a_name_and_a_password_in_the_url_are_used_and_not_told(server: Web, tmp_path: Path) -> None:
    url = server.url.replace("http://", "http://me:hun%2Fter@")
    StorageClient(StorageElement(name="web", url=url)).fetch(url, str(tmp_path / "file"), REF)
    assert server.asked[0]["Authorization"] == "Basic " + base64.b64encode(b"me:hun/ter").decode()
    server.status = 403
    with pytest.raises(TransferFailed) as failure:
        StorageClient(StorageElement(name="web", url=url)).fetch(url, str(tmp_path / "other"), REF)
    assert "hun" not in str(failure.value)
