"""The options of `mendflow serve` for an issuer of OpenID Connect."""

from collections.abc import Sequence
from typing import Annotated

import typer

from mendflow.core.model.errors import InvalidRequest
from mendflow.server.oidc import OidcOptions, require_options

OidcIssuerUrl = Annotated[
    str,
    typer.Option(
        "--oidc-issuer",
        metavar="URL",
        envvar="MENDFLOW_OIDC_ISSUER",
        help="Also know people by tokens of this OpenID Connect issuer.",
        show_default=False,
        show_envvar=False,
    ),
]
OidcAudience = Annotated[
    str,
    typer.Option(
        "--oidc-audience",
        metavar="NAME",
        envvar="MENDFLOW_OIDC_AUDIENCE",
        help="The audience that such a token must be made for.",
        show_default=False,
        show_envvar=False,
    ),
]
OidcRoles = Annotated[
    str,
    typer.Option(
        "--oidc-roles",
        metavar="CLAIM",
        envvar="MENDFLOW_OIDC_ROLES",
        help="The claim with the roles, such as groups; values are mendflow:ROLE or mendflow:PROJECT:ROLE.",
        show_default=False,
        show_envvar=False,
    ),
]
OidcMap = Annotated[
    list[str] | None,
    typer.Option(
        "--oidc-map",
        metavar="VALUE=ROLE",
        help="What a value of that claim stands for: a role, or PROJECT:ROLE; repeat it for the next value.",
        show_default=False,
    ),
]
OidcName = Annotated[
    str,
    typer.Option(
        "--oidc-name",
        metavar="CLAIM",
        envvar="MENDFLOW_OIDC_NAME",
        help="The claim by which people are known here; the issuer must not let them change it.",
        show_envvar=False,
    ),
]


def oidc_options(
    issuer: str, audience: str, roles: str, mapping: Sequence[str] | None, name: str
) -> OidcOptions | None:
    """The issuer that was named, if one was."""
    if not issuer:
        if audience or roles or mapping:
            raise InvalidRequest("--oidc-audience, --oidc-roles and --oidc-map are about an issuer: give --oidc-issuer")
        return None
    pairs = [each.rpartition("=") for each in mapping or ()]
    if bad := next((each for each, pair in zip(mapping or (), pairs, strict=True) if not pair[0]), ""):
        raise InvalidRequest(f"--oidc-map {bad!r}: write VALUE=ROLE or VALUE=PROJECT:ROLE")
    options = OidcOptions(
        issuer=issuer,
        audience=audience,
        roles=roles,
        mapping={value: meant for value, _, meant in pairs},
        name=name,
    )
    require_options(options)
    return options
