"""Who logs in where: passwords of URLs are for their server, and for nobody who reads a message."""

from pathlib import Path

import pytest

from mendflow.core.model.data import StorageElement
from mendflow.transfer.element import StorageClient
from mendflow.transfer.errors import BadFileUrl, TransferFailed
from tests.servers.ftp import ftp_server


def fetch(url: str, to: Path) -> str:
    StorageClient(StorageElement(name="", url=url)).fetch(url, str(to))
    return to.read_text()


def test_a_password_is_decoded_and_sent_and_a_wrong_one_is_refused_at_once_and_not_told(tmp_path: Path) -> None:  # FM-2
    (tmp_path / "in.txt").write_text("here")
    with ftp_server(tmp_path, "ann", "a/b:c") as (port, logins):
        assert fetch(f"ftp://ann:a%2Fb%3Ac@127.0.0.1:{port}/in.txt", tmp_path / "got") == "here"
        logins.clear()
        with pytest.raises(TransferFailed, match="refuses the login") as refused:
            fetch(f"ftp://ann:secret-word@127.0.0.1:{port}/in.txt", tmp_path / "other")
    assert logins == [("ann", False)]
    assert not refused.value.passing and "secret-word" not in str(refused.value)


def test_a_password_that_another_store_has_sealed_is_said_to_be_so(tmp_path: Path) -> None:  # FM-2
    with pytest.raises(BadFileUrl, match="sealed by the servers of another store"):
        fetch("ftp://ann:sealed-AAAA@host/in.txt", tmp_path / "got")
