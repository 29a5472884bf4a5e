"""Notifications as people read them."""

import msgspec
import pytest

from mendflow.address_guard import ANYWHERE
from mendflow.core.model.alerts import MessageFormat, Notification
from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.ids import CaseId
from mendflow.services.base.poster import NO_POSTER, Mail
from mendflow.services.base.receivers import address_of, check_address, is_address, people_of
from mendflow.services.observe.notifications.messages import body_of, format_of, mail_of

FAILED = Notification(
    id="align-7:end",
    kind="failed",
    at=1,
    message="it ended with <exit> code *3* in @here",
    case=CaseId("align-7"),
    flow="align",
    owner="ann",
)
ALERT = Notification(id="alert@1", kind="alert", at=1, message="pilot p1 is gone", alert="pilot-gone/p1")


class MailingPoster:
    guard = ANYWHERE
    mails = True

    async def post(self, url: str, body: bytes, headers: object) -> str:
        return ""

    async def mail(self, mail: Mail) -> str:
        return ""


def text_of(format: MessageFormat) -> str:
    return str(msgspec.json.decode(body_of(FAILED, format))["text"])


@pytest.mark.parametrize(
    ("address", "format"),
    [
        ("https://hooks.slack.com/services/T0/B0/x", "slack"),
        ("https://acme.webhook.office.com/webhookb2/1", "teams"),
        ("https://prod-1.westeurope.logic.azure.com:443/workflows/1", "teams"),
        ("https://chat.example.org/hooks/abc", "json"),
        ("https://nothooks.slack.com.example.org/x", "json"),
        ("mailto:ann@example.org", "mail"),
    ],
)
def test_the_form_follows_from_the_address(address: str, format: str) -> None:  # DU-8
    assert format_of(address) == format


def test_json_is_the_notification_itself() -> None:  # DU-8
    assert msgspec.json.decode(body_of(FAILED, "json"), type=Notification) == FAILED


def test_in_a_chat_a_message_shows_as_it_is_and_calls_nobody() -> None:  # DU-8
    slack, mattermost = text_of("slack"), text_of("mattermost")
    assert slack.splitlines()[0] == "\N{CROSS MARK} *align-7 failed*"
    assert "&lt;exit&gt;" in slack and "*3*" not in slack
    assert mattermost.splitlines()[0] == "\N{CROSS MARK} **align-7 failed**"
    assert "\\*3\\*" in mattermost and "@here" not in mattermost
    assert slack.splitlines()[-1] == "more: mendflow why align-7"


def test_teams_gets_an_adaptive_card() -> None:  # DU-8
    [content] = msgspec.json.decode(body_of(FAILED, "teams"))["attachments"]
    assert content["contentType"] == "application/vnd.microsoft.card.adaptive"
    texts = [block["text"] for block in content["content"]["body"]]
    assert texts[0] == "\N{CROSS MARK} align-7 failed" and texts[-1] == "more: mendflow why align-7"


def test_a_mail_says_in_its_subject_what_happened() -> None:  # DU-8
    mail = mail_of("mailto:ann@example.org, bob@example.org", FAILED)
    assert mail.to == ("ann@example.org", "bob@example.org")
    assert mail.subject == "[mendflow] align-7 failed: it ended with <exit> code *3* in @here"
    assert "flow: align\nowner: ann\nmore: mendflow why align-7" in mail.text
    assert mail_of("mailto:a@b", FAILED).id == mail.id != mail_of("mailto:a@b", ALERT).id


def test_a_message_with_line_ends_cannot_add_headers_to_a_mail() -> None:  # DU-8
    nasty = msgspec.structs.replace(FAILED, message="one\r\nBcc: eve@example.org\n\n" + "x" * 9_000)
    mail = mail_of("mailto:ann@example.org", nasty)
    assert "\n" not in mail.subject and "\r" not in mail.subject and len(mail.subject) == 150
    assert len(mail.text) < 4_000


@pytest.mark.parametrize(
    ("receiver", "address"),
    [
        ("ann@example.org", "mailto:ann@example.org"),
        ("mailto:ann@example.org", "mailto:ann@example.org"),
        ("https://example.org/@x", "https://example.org/@x"),
    ],
)
def test_a_mail_address_is_written_in_either_way(receiver: str, address: str) -> None:  # DU-8
    assert is_address(receiver) and address_of(receiver) == address
    check_address(address, MailingPoster())


def test_a_name_is_no_address() -> None:  # DU-8
    assert not is_address("pager")


@pytest.mark.parametrize(
    "bad",
    ["mailto:", "mailto:ann", "mailto:@example.org", "mailto:a b@example.org", "mailto:a@b@c", "mailto:a@b\nBcc: c@d",
     "mailto:a@example.org?bcc=eve@example.org", "mailto:ann@example.org,<x>"],
)  # fmt: skip
def test_what_is_no_mail_address_is_refused(bad: str) -> None:  # DU-8
    with pytest.raises(InvalidRequest, match="is not a mail address"):
        check_address(bad, MailingPoster())


def test_a_server_without_a_mail_server_says_how_to_name_one() -> None:  # DU-8
    with pytest.raises(InvalidRequest, match="start it with --smtp smtp://HOST"):
        check_address("mailto:ann@example.org", NO_POSTER)
    assert people_of("mailto:a@b,c@d") == ("a@b", "c@d")


@pytest.mark.parametrize("format", ["slack", "mattermost", "teams"])
def test_what_a_job_prints_becomes_no_link_in_a_chat(format: MessageFormat) -> None:  # DU-8
    said = "see https://evil.example or www.evil.example :tada: @channel \x1b[31m\0"
    body = body_of(msgspec.structs.replace(FAILED, message=said), format).decode()
    assert not any(each in body for each in ("https://evil", "www.evil", ":tada:", "@channel", "\\u001b", "\\u0000"))
    assert "evil.example" in body, "and can be read"
