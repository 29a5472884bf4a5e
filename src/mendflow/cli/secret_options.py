"""Where a server finds the key of its secrets, and secrets of its machine."""

import os
from pathlib import Path
from typing import Annotated

import typer

KEY_VARIABLE = "MENDFLOW_SECRETS_KEY"
FROM_VARIABLE = "MENDFLOW_SECRETS_FROM"

SecretsKey = Annotated[
    str,
    typer.Option(
        "--secrets-key",
        metavar="FILE",
        envvar=KEY_VARIABLE,
        help="The key of the secrets in the store, the same for all servers on it; default: secrets.key in --data-dir.",
        show_default=False,
        show_envvar=False,
    ),
]
SecretsFrom = Annotated[
    list[str] | None,
    typer.Option(
        "--secrets-from",
        metavar="DIR",
        envvar=FROM_VARIABLE,
        help="Also read secrets from the files of this folder, or env:PREFIX_ from variables; repeat it for the next.",
        show_default=False,
        show_envvar=False,
    ),
]


def key_of_environment() -> Path | None:
    return Path(found) if (found := os.environ.get(KEY_VARIABLE, "")) else None


def sources_of_environment() -> tuple[str, ...]:
    return tuple(os.environ.get(FROM_VARIABLE, "").split())
