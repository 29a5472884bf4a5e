"""What a pilot reaches for jobs that it keeps apart from itself: nothing private that nobody has allowed."""

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mendflow.address_guard import AddressGuard
from mendflow.core.model.data import StorageElement
from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.values import FileRef
from mendflow.pilot.agent.http import FileClient, ServerAddress
from mendflow.pilot.files.sources import InputSources, OpenElements
from mendflow.pilot.isolation.allowed_transfers import address_guard, bounds_of, transfer_check
from mendflow.pilot.isolation.options import NOT_ISOLATED, Isolation, isolation_of
from mendflow.pilot.options import parse
from mendflow.transfer import guarded_web
from mendflow.transfer.errors import BadFileUrl, TransferFailed
from tests.pilot.test_publishing import OnePlace
from tests.transfer.web_server import Web, web

CONTENT = b"what only this machine reaches"
AS_NOBODY = Isolation(jobs_as="nobody")
PRIVATE_BARRED = AddressGuard()


@pytest.fixture
def server() -> Iterator[Web]:
    with web(CONTENT) as server:
        yield server


def sources_of(isolation: Isolation, catalogue: Any = None) -> InputSources:
    return InputSources(
        FileClient(ServerAddress("http://127.0.0.1:1", "")),
        OpenElements(),
        catalogue,
        check_transfer=transfer_check(isolation),
        bounds=bounds_of(isolation),
        guard=address_guard(isolation),
    )


def port_of(server: Web) -> int:
    return int(server.server_address[1])


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "a.localhost", "[::ffff:127.0.0.1]", "2130706433", "0x7f.1", "127.1", "0.0.0.0"]
)
def test_nothing_of_its_own_machine_is_fetched_for_jobs_that_are_kept_apart(
    server: Web, tmp_path: Path, host: str
) -> None:  # SE-2, SE-5
    with pytest.raises(BadFileUrl, match=r"is a private address, .*storage element, .*--allow-address"):
        sources_of(AS_NOBODY).fetch(f"http://{host}:{port_of(server)}/file", str(tmp_path / "taken"), None)
    assert server.asked == [] and not (tmp_path / "taken").exists()


@pytest.mark.parametrize("host", ["127.0.0.%31", "%31%32%37.0.0.1", "local%68ost"])
def test_a_host_that_is_percent_coded_is_refused(server: Web, tmp_path: Path, host: str) -> None:  # SE-5
    with pytest.raises(BadFileUrl, match="host cannot be read"):
        sources_of(AS_NOBODY).fetch(f"http://{host}:{port_of(server)}/file", str(tmp_path / "taken"), None)
    with pytest.raises(BadFileUrl, match="private address"):  # and whoever asks for it without that look
        guarded_web.guarded_opener(PRIVATE_BARRED).open(f"http://{host}:{port_of(server)}/file")
    assert server.asked == [] and not (tmp_path / "taken").exists()


def test_a_host_of_another_protocol_that_is_not_known_here_is_not_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # SE-5
    def unknown(*_: object, **__: object) -> list[Any]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    for writes in (False, True):
        with pytest.raises(TransferFailed, match=r"nothing is known of data\.example\.org here") as caught:
            transfer_check(AS_NOBODY)("sftp://data.example.org/x", writes)
        assert caught.value.passing, "it may be known in a moment"


@pytest.mark.parametrize(
    "address",
    [
        "http://169.254.169.254/latest/meta-data/iam/",
        "https://10.1.2.3/x",
        "http://[fe80::1]/x",
        "http://[::1]:8642/api/v1/cases",
        "http://192.168.0.1/x",
        "ftp://127.0.0.1/x",
        "sftp://localhost/x",
        "scp://10.0.0.1/x",
        "webdav://127.0.0.1/x",
        "root://[::1]//x",
        "gsiftp://172.16.0.1/x",
        "http://[oh/x",
    ],
)
def test_private_addresses_of_every_protocol_are_refused_at_once(address: str) -> None:  # SE-2, SE-5
    assert transfer_check(AS_NOBODY)(address, False) and transfer_check(AS_NOBODY)(address, True)
    assert not transfer_check(NOT_ISOLATED)(address, False)


def test_addresses_that_name_no_machine_are_not_concerned() -> None:  # SE-5
    assert not transfer_check(AS_NOBODY)("s3://localhost/x", False)


def test_jobs_that_are_not_kept_apart_have_what_they_reach_anyway(server: Web, tmp_path: Path) -> None:  # FM-6
    sources_of(NOT_ISOLATED).fetch(server.url, str(tmp_path / "file"), None)
    assert (tmp_path / "file").read_bytes() == CONTENT


@pytest.mark.parametrize("allowed", ["127.0.0.0/8", "127.0.0.1:{port}", "localhost"])
def test_what_the_owner_of_the_pilot_allows_is_fetched(server: Web, tmp_path: Path, allowed: str) -> None:  # SE-5
    isolation = Isolation(jobs_as="nobody", addresses=(allowed.format(port=port_of(server)),))
    host = "localhost" if allowed == "localhost" else "127.0.0.1"
    sources_of(isolation).fetch(f"http://{host}:{port_of(server)}/file", str(tmp_path / "file"), None)
    assert (tmp_path / "file").read_bytes() == CONTENT


def test_a_redirect_leads_to_nothing_private(server: Web, tmp_path: Path) -> None:  # SE-5
    isolation = Isolation(jobs_as="nobody", addresses=(f"127.0.0.1:{port_of(server)}",))
    with web(b"secret") as other:
        coded = f"http://127.0.0.%31:{port_of(other)}/file"
        for moved in (other.url, coded, f"ftp://127.0.0.1:{port_of(other)}/file"):
            server.moved = moved
            with pytest.raises(BadFileUrl):
                sources_of(isolation).fetch(server.url, str(tmp_path / "taken"), None)
        assert other.asked == [] and not (tmp_path / "taken").exists()
        isolation = Isolation(jobs_as="nobody", addresses=("127.0.0.1",))
        server.moved = other.url
        sources_of(isolation).fetch(server.url, str(tmp_path / "file"), None)
    assert (tmp_path / "file").read_bytes() == b"secret"


@pytest.mark.parametrize("protocol", ["webhdfs", "webdav", "hdfs", "arrow_hdfs"])
def test_protocols_that_lead_on_are_for_storage_elements_alone(
    server: Web, tmp_path: Path, protocol: str
) -> None:  # SE-5
    isolation = Isolation(jobs_as="nobody", addresses=(f"127.0.0.1:{port_of(server)}",))
    with web(b"secret") as other:
        server.moved = other.url
        address = f"{protocol}://127.0.0.1:{port_of(server)}/file"
        with pytest.raises(BadFileUrl, match=r"leads on to wherever its server says.* storage element"):
            sources_of(isolation).fetch(address, str(tmp_path / "taken"), None)
        assert server.asked == [] and other.asked == [] and not (tmp_path / "taken").exists()
    assert transfer_check(isolation)(address, True) and not transfer_check(NOT_ISOLATED)(address, True)


def test_a_storage_element_may_lead_on(server: Web, tmp_path: Path) -> None:  # SE-5
    element = StorageElement(name="hadoop", url=f"webhdfs://127.0.0.1:{port_of(server)}/file")
    with web(CONTENT) as other, pytest.raises(TransferFailed):  # no Hadoop, but it was followed
        server.moved = other.url
        sources_of(AS_NOBODY, OnePlace(element)).fetch("lfn:/data", str(tmp_path / "file"), None)
    assert server.asked and other.asked


def test_a_name_that_means_a_private_address_is_refused_and_one_is_resolved_once(
    server: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # SE-5
    asked: list[str] = []

    def resolved(host: str, port: int, *_: object, **__: object) -> list[Any]:
        asked.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    address = f"http://data.example.org:{port_of(server)}/file"
    with pytest.raises(BadFileUrl, match=r"data\.example\.org is a private address"):
        sources_of(AS_NOBODY).fetch(address, str(tmp_path / "taken"), None)
    assert server.asked == []
    assert transfer_check(AS_NOBODY)("ftp://data.example.org/x", False)
    asked.clear()
    isolation = Isolation(jobs_as="nobody", addresses=("127.0.0.0/8",))
    sources_of(isolation).fetch(address, str(tmp_path / "file"), None)
    assert asked == ["data.example.org"], "what was checked is what is connected to"
    assert (tmp_path / "file").read_bytes() == CONTENT


def test_a_storage_element_that_an_administrator_names_is_reached(server: Web, tmp_path: Path) -> None:  # SE-5
    element = StorageElement(name="near", url=server.url)
    sources_of(AS_NOBODY, OnePlace(element)).fetch("lfn:/data", str(tmp_path / "file"), None)
    assert (tmp_path / "file").read_bytes() == CONTENT


def test_a_proxy_of_the_environment_is_asked_for_nothing_private(
    server: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # SE-5
    monkeypatch.setenv("http_proxy", server.url)
    monkeypatch.delenv("no_proxy", raising=False)
    guarded_web.guarded_opener.cache_clear()
    try:
        with pytest.raises(BadFileUrl, match="private address"):
            sources_of(AS_NOBODY).fetch("http://10.1.2.3/x", str(tmp_path / "taken"), None)
        assert server.asked == []
        with pytest.raises(BadFileUrl, match="host cannot be read"):
            sources_of(AS_NOBODY).fetch("http://10.1.2.%33/x", str(tmp_path / "taken"), None)
        assert server.asked == []
        sources_of(AS_NOBODY).fetch("http://name.invalid/x", str(tmp_path / "file"), None)
        assert (tmp_path / "file").read_bytes() == CONTENT
    finally:
        guarded_web.guarded_opener.cache_clear()


def test_the_allow_list_is_an_option_of_the_pilot(tmp_path: Path) -> None:  # SE-5
    words = ["--server", "http://h:1", "--work", str(tmp_path), "--allow-address", "10.1.0.0/16"]
    isolation = parse([*words, "--sandbox", "containers"]).isolation
    assert isolation.addresses == ("10.1.0.0/16",)
    assert isolation.words == ["--sandbox", "containers", "--allow-address", "10.1.0.0/16"]
    with pytest.raises(InvalidRequest, match="is no network"):
        isolation_of(addresses=["10.1/x"])


def test_a_file_whose_digest_is_known_is_guarded_too(server: Web, tmp_path: Path) -> None:  # SE-5
    ref = FileRef(sha256="a" * 64, bytes=len(CONTENT), name="x")
    with pytest.raises(BadFileUrl, match="private address"):
        sources_of(AS_NOBODY).fetch(server.url, str(tmp_path / "taken"), ref)
