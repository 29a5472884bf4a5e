"""Mail goes through the owner's mail server, and what it does not take is said."""

import asyncio
import smtplib
import socket
from pathlib import Path

import pytest

from mendflow.address_guard import is_loopback
from mendflow.core.model.errors import InvalidRequest, NotFound
from mendflow.server.mail import SmtpSender, mail_server
from mendflow.services.base.poster import Mail
from tests.server.mail_server import Mailbox

MAIL = Mail(id="7f", to=("ann@example.org", "bob@example.org"), subject="align-7 failed", text="größer als erlaubt\n")


def send(box: Mailbox, *, user: str = "", password_file: str = "", sender: str = "flows@example.org") -> str:
    async def story() -> str:
        async with box.open():
            login = f"{user}@" if user else ""
            given = mail_server(f"smtp://{login}127.0.0.1:{box.port}", sender, password_file)
            return await SmtpSender(given).send(MAIL)

    return asyncio.run(story())


def test_a_mail_arrives_as_it_was_written() -> None:  # DU-8
    box = Mailbox()
    assert send(box) == ""
    [mail] = box.mails
    assert mail["To"] == "ann@example.org, bob@example.org"
    assert (mail["From"], mail["Subject"]) == ("flows@example.org", "align-7 failed")
    assert mail["Message-ID"] == "<7f@example.org>", "the same however often it is sent"
    assert mail["Auto-Submitted"] == "auto-generated"
    assert mail.get_content().replace("\r\n", "\n") == "größer als erlaubt\n"


def test_a_person_whom_the_mail_server_does_not_know_is_named() -> None:  # DU-8
    box = Mailbox()
    box.unknown = {"bob@example.org"}
    assert send(box) == "127.0.0.1 refused bob@example.org"
    assert len(box.mails) == 1, "the other has it"


def test_a_mail_server_that_wants_a_password_gets_it_from_a_file(tmp_path: Path) -> None:  # DU-8
    (tmp_path / "right").write_text("geheim\n")
    (tmp_path / "wrong").write_text("something else\n")
    assert send(Mailbox(password="geheim"), user="flows", password_file=str(tmp_path / "right")) == ""
    said = send(Mailbox(password="geheim"), user="flows", password_file=str(tmp_path / "wrong"))
    assert said == "127.0.0.1 did not take user and password"
    assert "geheim" not in repr(mail_server("smtp://flows@h", "", str(tmp_path / "right")))


@pytest.mark.parametrize("host", ["10.0.0.7", "192.168.1.2", "[fd00::7]", "mail.example.org"])
def test_a_password_goes_unencrypted_to_no_other_machine(
    host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # DU-8
    (tmp_path / "password").write_text("geheim\n")
    box = Mailbox(password="geheim")

    def here(_line: smtplib.SMTP, _host: str, port: int, timeout: float) -> socket.socket:
        return socket.create_connection(("127.0.0.1", port), timeout)

    monkeypatch.setattr(smtplib.SMTP, "_get_socket", here)

    async def story() -> str:
        async with box.open():
            given = mail_server(f"smtp://flows@{host}:{box.port}", "", str(tmp_path / "password"))
            return await SmtpSender(given).send(MAIL)

    assert "does not encrypt, so the password is not sent" in asyncio.run(story())
    assert not box.mails


@pytest.mark.parametrize("host", ["localhost", "mail.localhost", "127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1"])
def test_this_machine_is_known_by_its_names(host: str) -> None:  # DU-8
    assert is_loopback(host)
    assert not is_loopback("localhost.example.org")


def test_a_mail_server_that_is_away_is_told() -> None:  # DU-8
    async def story() -> str:
        box = Mailbox()
        async with box.open():
            port = box.port
        return await SmtpSender(mail_server(f"smtp://127.0.0.1:{port}", "", "")).send(MAIL)

    assert asyncio.run(story()).startswith("no connection to 127.0.0.1: ")


@pytest.mark.parametrize(
    ("url", "scheme", "port"),
    [
        ("smtp://mail.example.org", "smtp", 25),
        ("smtp://flows@mail.example.org", "smtp", 587),
        ("smtps://mail.example.org", "smtps", 465),
        ("smtp://mail.example.org:2525", "smtp", 2525),
    ],
)
def test_the_usual_ports_are_known(url: str, scheme: str, port: int, tmp_path: Path) -> None:  # DU-8
    (tmp_path / "word").write_text("x")
    given = mail_server(url, "", str(tmp_path / "word"))
    assert (given.scheme, given.host, given.port) == (scheme, "mail.example.org", port)
    assert given.sender == "mendflow@mail.example.org"


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("mail.example.org", "write smtp://mail.example.org:587"),
        ("http://mail.example.org", "is no mail server"),
        ("smtp://", "is no mail server"),
        ("smtp://mail.example.org:x", "is no mail server"),
        ("smtp://ann:word@mail.example.org", "--smtp-password-file FILE"),
        ("smtp://ann@mail.example.org", "give the password with --smtp-password-file FILE"),
    ],
)
def test_what_is_no_mail_server_is_refused(url: str, said: str) -> None:  # DU-8
    with pytest.raises(InvalidRequest) as refused:
        mail_server(url, "", "")
    assert said in refused.value.message and "word@" not in refused.value.message


def test_a_password_file_that_is_not_there_is_named(tmp_path: Path) -> None:  # DU-8
    with pytest.raises(NotFound, match="cannot read the password file"):
        mail_server("smtp://ann@mail.example.org", "", str(tmp_path / "none"))
