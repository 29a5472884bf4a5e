"""Through which mail server mail is sent: options of `mendflow serve`, and variables of the environment, which also
hold for servers that a command runs by itself."""

import os
from typing import Annotated

import typer

from mendflow.core.model.alerts import MailOptions

_SMTP, _PASSWORD_FILE, _FROM = "MENDFLOW_SMTP", "MENDFLOW_SMTP_PASSWORD_FILE", "MENDFLOW_MAIL_FROM"

Smtp = Annotated[
    str,
    typer.Option(
        "--smtp",
        metavar="URL",
        envvar=_SMTP,
        help="The mail server that sends notifications to people: smtp://[USER@]HOST[:PORT], or smtps.",
        show_default=False,
    ),
]
SmtpPasswordFile = Annotated[
    str,
    typer.Option(
        "--smtp-password-file",
        metavar="FILE",
        envvar=_PASSWORD_FILE,
        help="A file with the password for the mail server.",
        show_default=False,
    ),
]
MailFrom = Annotated[
    str,
    typer.Option(
        "--mail-from",
        metavar="ADDRESS",
        envvar=_FROM,
        help="Whom mails come from; default: mendflow@HOST.",
        show_default=False,
    ),
]


def mail_of_environment() -> MailOptions:
    return MailOptions(
        smtp=os.environ.get(_SMTP, ""),
        password_file=os.environ.get(_PASSWORD_FILE, ""),
        sender=os.environ.get(_FROM, ""),
    )
