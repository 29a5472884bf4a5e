"""Commands about notifications and webhooks."""

from pathlib import Path
from typing import Annotated, get_args

import msgspec
import typer

from mendflow.cli.command_context import CommandContext, with_context
from mendflow.cli.list_options import Limit
from mendflow.cli.printing import print_answer, print_json, print_table, say
from mendflow.client import Client
from mendflow.core.model.alerts import (
    CHAT_FORMATS,
    DEFAULT_NOTIFICATION_KINDS,
    NOTIFICATION_KINDS,
    MessageFormat,
    Notification,
    NotificationKind,
    WebhookSpec,
)
from mendflow.core.model.errors import InvalidRequest, NotFound
from mendflow.pages.formatting import short_time_text

app = typer.Typer()
webhooks = typer.Typer(invoke_without_command=True)
app.add_typer(webhooks, name="webhooks")

HookArgument = Annotated[str, typer.Argument(metavar="WEBHOOK", help="A webhook's id, as the list prints it.")]


@webhooks.callback()
@with_context
def list_webhooks(context: CommandContext) -> None:
    """List the webhooks that notifications are sent to; add, remove or test one."""
    if context.inner:
        return
    views = context.run(lambda client: client.webhooks())
    if context.json:
        print_json(views)
    elif not views:
        say("There are no webhooks; add one with mendflow admin webhooks add ADDRESS.")
    else:
        heads = ("webhook", "on", "flow", "owner", "format", "signed", "address")
        rows = [(v.id, ", ".join(v.on), v.flow, v.owner, v.format, "yes" if v.signed else "no", v.url) for v in views]
        print_table(heads, rows)


@webhooks.command("add")
@with_context
def add(
    context: CommandContext,
    url: Annotated[
        str,
        typer.Argument(metavar="ADDRESS", help="An http or https URL, or a mail address: ann@example.org."),
    ],
    on: Annotated[
        str,
        typer.Option(
            "--on",
            metavar="KINDS",
            help=f"Events, separated by commas: {', '.join(NOTIFICATION_KINDS)}; none: only what flows tell it.",
        ),
    ] = ",".join(DEFAULT_NOTIFICATION_KINDS),
    format: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help=f"What a URL gets: {', '.join(CHAT_FORMATS)}; default: by the address, else json.",
            show_default=False,
        ),
    ] = "",
    name: Annotated[
        str,
        typer.Option(
            "--name",
            metavar="NAME",
            help="A name, by which flows tell it under `on:`; default: made up.",
            show_default=False,
        ),
    ] = "",
    flow: Annotated[str, typer.Option("--flow", metavar="NAME", help="Only of this flow.", show_default=False)] = "",
    owner: Annotated[
        str, typer.Option("--owner", metavar="OWNER", help="Only of this owner's cases.", show_default=False)
    ] = "",
    secret_file: Annotated[
        str,
        typer.Option(
            "--secret-file", metavar="FILE", help="A file with the secret that signs each request.", show_default=False
        ),
    ] = "",
) -> None:
    """Add a webhook."""
    wish = WebhookSpec(
        url=url,
        name=name,
        on=_kinds(on),
        format=_format(format),
        flow=flow,
        owner=owner,
        secret=_secret(secret_file),
    )
    view = context.run(lambda client: client.add_webhook(wish), changes=True, begin=True)
    if context.json:
        print_json(view)
    else:
        kinds = ", ".join(view.on) or "what flows tell it"
        say(f"{view.id} gets {kinds}; try it with mendflow admin webhooks test {view.id}")


@webhooks.command("remove")
@with_context
def remove(context: CommandContext, webhook: HookArgument) -> None:
    """Remove a webhook."""
    view = context.run(lambda client: client.remove_webhook(webhook), changes=True)
    print_answer(context.json, view, f"{view.id} is removed")


@webhooks.command("test")
@with_context
def test(context: CommandContext, webhook: HookArgument) -> None:
    """Send a test notification to a webhook."""
    view = context.run(lambda client: client.try_webhook(webhook))
    print_answer(context.json, view, view.message)
    if not view.ok:
        raise typer.Exit(1)


@app.command("notifications")
@with_context
def notifications(
    context: CommandContext,
    after: Annotated[
        int | None,
        typer.Option(
            "--after",
            min=0,
            metavar="N",
            help="Notifications after this number; default: the newest.",
            show_default=False,
        ),
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", help="Follow new notifications until Ctrl-C.")] = False,
    limit: Limit = 100,
) -> None:
    """List the notifications: ends of cases, and alerts."""
    if follow:
        context.run(lambda client: _follow(client, after, json=context.json))
        return
    views = context.run(lambda client: client.notifications(after=after, limit=limit))
    if context.json:
        print_json(views)
    elif not views:
        say("There are no notifications.")
    else:
        rows = [(str(v.serial), short_time_text(v.at), v.kind, v.case or v.alert, v.message) for v in views]
        print_table(("number", "at", "what", "of", "message"), rows, fold=4)


async def _follow(client: Client, after: int | None, *, json: bool) -> None:
    if after is None:
        newest = await client.notifications(limit=1)
        after = newest[-1].serial if newest else 0
    async for notification in client.follow_notifications(after):
        say(msgspec.json.encode(notification).decode() if json else _line(notification))


def _line(notification: Notification) -> str:
    at, about = short_time_text(notification.at), notification.case or notification.alert
    return f"{notification.serial} {at} {notification.kind} {about}: {notification.message}"


def _kinds(text: str) -> tuple[NotificationKind, ...]:
    known = {kind: kind for kind in get_args(NotificationKind) if kind in NOTIFICATION_KINDS}
    words = [word.strip() for word in text.split(",") if word.strip()] if text != "none" else []
    if bad := [word for word in words if word not in known]:
        raise InvalidRequest(f"--on {bad[0]!r} is not known; it is one of {', '.join(NOTIFICATION_KINDS)}")
    return tuple(known[word] for word in words)


def _format(text: str) -> MessageFormat | None:
    known: dict[str, MessageFormat] = {format: format for format in CHAT_FORMATS}
    if text and text not in known:
        raise InvalidRequest(f"--format {text!r} is not known; it is one of {', '.join(CHAT_FORMATS)}")
    return known.get(text)


def _secret(path: str) -> str:
    """Read from a file, never from the command line, where other users could see it."""
    if not path:
        return ""
    try:
        secret = Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise NotFound(f"cannot read the secret file {path}; check that it exists") from error
    if not secret:
        raise InvalidRequest(f"the secret file {path} is empty")
    return secret
