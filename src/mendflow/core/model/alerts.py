"""What administrators and clients are notified of: alerts, notifications, webhooks."""

from typing import Final, Literal

import msgspec

from mendflow.core.model.ids import CaseId, Instant, ItemId
from mendflow.core.model.values import Value
from mendflow.core.model.views import View

AlertKind = Literal[
    "orphan",
    "long-job",
    "pilot-gone",
    "server-gone",
    "queue-grows",
    "level-fills",
    "limit-unset",
    "no-pilot",
    "case-held",
    "disk-full",
    "not-delivered",
    "site-paused",
    "site-away",
    "failure",
    "rule-errs",
    "not-started",
    "message",
]
Severity = Literal["info", "warning", "critical"]
SEVERITIES: Final[tuple[Severity, ...]] = ("info", "warning", "critical")
NotificationKind = Literal["completed", "failed", "cancelled", "item-failed", "alert", "decision", "test"]
NOTIFICATION_KINDS: Final[tuple[NotificationKind, ...]] = (
    *("completed", "failed", "cancelled", "item-failed", "alert", "decision"),
)
DEFAULT_NOTIFICATION_KINDS: Final[tuple[NotificationKind, ...]] = ("completed", "failed", "alert")
MessageFormat = Literal["json", "slack", "mattermost", "teams", "mail"]
CHAT_FORMATS: Final[tuple[MessageFormat, ...]] = ("json", "slack", "mattermost", "teams")
"""In which form an http address gets notifications."""


class AlertedCase(View, frozen=True):
    """What tells the case of an alert from others of its flow, as in lists of cases: `left_out` names large inputs."""

    flow: str
    inputs: dict[str, Value] = {}
    defaults: dict[str, Value] = {}
    left_out: list[str] = []


class AlertView(View, frozen=True):
    """Something that a person should look at; `sentence` says what to do. Raised once for as long as it lasts, and
    closed when it is over. `id` is the same on every server that finds the same. A `message` is for information: its
    severity is `info`, and nobody has to acknowledge it. Lists have in `given` what its case was given."""

    id: str
    kind: AlertKind
    subject: str
    sentence: str
    raised_at: Instant
    raised_by: str  # the server that found it
    severity: Severity = "warning"
    case: CaseId = CaseId("")
    item: ItemId | None = None
    group: str = ""  # the cause, as in the list of failures, if it is about a failure
    closed_at: Instant = 0
    acknowledged_at: Instant = 0
    acknowledged_by: str = ""
    given: AlertedCase | None = None


class Notification(View, frozen=True):
    """An event for clients. `id` is the same however often it is sent; `serial` is its position among all, from which
    reading continues. Of a decision, `state` says how it is now, and `result` what came of it."""

    id: str
    kind: NotificationKind
    at: Instant
    message: str
    case: CaseId = CaseId("")
    flow: str = ""
    owner: str = ""
    item: ItemId | None = None
    alert: str = ""  # the id of its alert
    decision: str = ""  # the id of its decision
    state: str = ""
    result: str = ""
    serial: int = 0


class WebhookView(View, frozen=True):
    """An address that gets notifications; its secret is never shown. Empty `flow` and `owner` mean any. `case` is set
    for a webhook that was given with a case and ends with it."""

    id: str
    url: str
    on: list[NotificationKind]
    format: MessageFormat = "json"
    flow: str = ""
    owner: str = ""
    case: CaseId = CaseId("")
    signed: bool = False
    made_at: Instant = 0
    made_by: str = ""


class WebhookSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`url` is an http or https address, or people's addresses for mail: `mailto:ann@example.org`. `format` is found by
    the address unless given. `name` is by what flows name it under `on:`; made up unless given. With a name, `on` may
    be empty: then it gets only what such flows send."""

    url: str
    name: str = ""
    on: tuple[NotificationKind, ...] = DEFAULT_NOTIFICATION_KINDS
    format: MessageFormat | None = None
    flow: str = ""
    owner: str = ""
    secret: str = ""


class DeliveryResult(View, frozen=True):
    """The result of a test delivery."""

    ok: bool
    message: str


class MailOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Through which mail server mail is sent, and from whom; without a URL no mail is sent."""

    smtp: str = ""
    password_file: str = ""
    sender: str = ""
