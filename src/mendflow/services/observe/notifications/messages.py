"""Notifications in the forms that people read: as a message in a chat, or as a mail.

A chat shows some characters as markup; what comes from jobs and flows is written so that it shows as it is."""

import hashlib
from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

import msgspec

from mendflow.core.model.alerts import MessageFormat, Notification
from mendflow.core.model.repair import BY_HAND, Decision
from mendflow.core.model.rules import rule_text
from mendflow.lazy import lazy_pattern
from mendflow.services.base.poster import Mail
from mendflow.services.base.receivers import is_mail, people_of

SUBJECT_CHARS_MAX: Final = 150
TEXT_CHARS_MAX: Final = 3_000
"""Slack cuts messages of more than 4,000 characters, Teams refuses those of more than 28 kB."""

Escape = Callable[[str], str]
_PICTURE: Final = lazy_pattern(r":(?=[\w+-]+:)")
"""The colon that begins the name of a picture, as in `:tada:`."""
_encode = msgspec.json.Encoder().encode
_MARKS: Final = {"failed": "\N{CROSS MARK}", "item-failed": "\N{CROSS MARK}", "alert": "\N{WARNING SIGN}"}
_FORMATS_BY_HOST: Final[tuple[tuple[str, MessageFormat], ...]] = (
    ("hooks.slack.com", "slack"),
    ("hooks.slack-gov.com", "slack"),
    (".webhook.office.com", "teams"),
    (".logic.azure.com", "teams"),
    (".api.powerplatform.com", "teams"),
)


def format_of(address: str) -> MessageFormat:
    """In which form this address wants notifications, by what it looks like."""
    if is_mail(address):
        return "mail"
    host = urlsplit(address).hostname or ""
    return next((format for end, format in _FORMATS_BY_HOST if host == end or host.endswith(end)), "json")


def body_of(notification: Notification, format: MessageFormat) -> bytes:
    """What an http address gets."""
    if format == "slack":
        return _encode({"text": _chat_text(notification, bold="*", escape=_slack_text)})
    if format == "mattermost":
        return _encode({"text": _chat_text(notification, bold="**", escape=_markdown_text)})
    if format == "teams":
        return _encode(_teams_message(notification))
    return _encode(notification)


def mail_of(address: str, notification: Notification) -> Mail:
    title, lines = _title(notification), _lines(notification)
    message = " ".join(notification.message.split())
    return Mail(
        id=hashlib.sha256(notification.id.encode()).hexdigest()[:32],
        to=people_of(address),
        subject=_cut(f"[mendflow] {title}: {message}", SUBJECT_CHARS_MAX),
        text="\n".join([title, "", _cut(notification.message, TEXT_CHARS_MAX), "", *lines, ""]),
    )


def decision_text(decision: Decision) -> str:
    """What was decided about what, by which rule or person, and what came of it."""
    about = f"{decision.type.value} of {decision.item or decision.case}"
    if decision.fault is not None:
        about += f" ({decision.fault.message})"
    chosen = decision.conclusion
    if decision.state == "waiting":
        return f"{about}: no rule knows it, and it waits for a person"
    if chosen is None:
        told = "rules on trial would have acted" if decision.state == "passive" else "nothing is done"
        return f"{about}: {told}; {decision.note}" if decision.note else f"{about}: {told}"
    by = f"by {chosen.ordered_by or 'a person'}" if chosen.rule == BY_HAND else rule_text(chosen.rules, chosen.rule)
    came = decision.result or decision.state
    note = f"; {decision.note}" if decision.note else ""
    return f"{about}: {chosen.exlet} ({by}): {came}{note}"


def _title(notification: Notification) -> str:
    if notification.kind == "decision":
        return f"decision about {notification.item or notification.case}"
    if notification.kind == "alert":
        return "alert"
    if notification.kind == "item-failed" and notification.item is not None:
        return f"{notification.item} failed"
    return f"{notification.case} {notification.kind}".strip()


def _lines(notification: Notification) -> list[str]:
    """What else there is to say, and the command that says more."""
    facts = (("flow", notification.flow), ("owner", notification.owner))
    lines = [f"{name}: {value}" for name, value in facts if value]
    if notification.kind == "alert":
        return [*lines, "more: mendflow alerts"]
    if notification.kind == "decision" and notification.item is not None:
        return [*lines, f"more: mendflow why {notification.case}:{notification.item}"]
    return [*lines, f"more: mendflow why {notification.item or notification.case}"] if notification.case else lines


def _chat_text(notification: Notification, *, bold: str, escape: Escape) -> str:
    mark = f"{_MARKS[notification.kind]} " if notification.kind in _MARKS else ""
    title = f"{mark}{bold}{escape(_title(notification))}{bold}"
    lines = [escape(each) for each in (_cut(notification.message, TEXT_CHARS_MAX), *_lines(notification))]
    return "\n".join([title, *lines])


def _teams_message(notification: Notification) -> dict[str, object]:
    """An adaptive card, which is what workflows of Teams take."""
    mark = f"{_MARKS[notification.kind]} " if notification.kind in _MARKS else ""
    texts = [_cut(notification.message, TEXT_CHARS_MAX), *_lines(notification)]
    title: dict[str, object] = {"type": "TextBlock", "weight": "Bolder", "wrap": True}
    blocks = [{"type": "TextBlock", "wrap": True, "text": _markdown_text(text)} for text in texts]
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": [{**title, "text": _markdown_text(f"{mark}{_title(notification)}")}, *blocks],
    }
    content = {"contentType": "application/vnd.microsoft.card.adaptive", "content": card}
    return {"type": "message", "attachments": [content]}


def _slack_text(text: str) -> str:
    """Slack reads `<...>` as links and mentions; a zero-width space keeps its other marks from pairing."""
    plain = _unlinked(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    for mark in "*_~`":
        plain = plain.replace(mark, f"\N{ZERO WIDTH SPACE}{mark}")
    return plain


def _unlinked(text: str) -> str:
    """Without what chats make links, mentions and pictures of, and without characters that nobody sees."""
    seen = "".join(each for each in text if each == "\n" or each.isprintable())
    for mark, apart in (("://", ":\u200b//"), ("www.", "www\u200b."), ("@", "@\u200b")):
        seen = seen.replace(mark, apart)
    return _PICTURE.sub(":\u200b", seen)


def _markdown_text(text: str) -> str:
    """Markdown's marks as themselves."""
    text = _unlinked(text)
    for mark in "\\`*_[]<>#|~":
        text = text.replace(mark, f"\\{mark}")
    return text


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."
