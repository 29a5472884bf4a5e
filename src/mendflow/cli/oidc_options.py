"""The options of `mendflow serve` for an issuer of OpenID Connect."""

from collections.abc import Sequence
from typing import Annotated, Any, Final

import typer

from mendflow.cli.option_groups import OptionTable, options_as
from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.units import DURATION_EXAMPLES, duration_ms
from mendflow.server.oidc import SCOPES, OidcClient, OidcOptions, require_options


def _text(name: str, metavar: str, help: str, **more: Any) -> Any:
    variable = "MENDFLOW_" + name.removeprefix("--").replace("-", "_").upper()
    return Annotated[str, typer.Option(name, metavar=metavar, envvar=variable, help=help, show_envvar=False, **more)]


OIDC: Final[OptionTable] = {
    "oidc_issuer": (
        _text("--oidc-issuer", "URL", "Also know people by tokens of this OpenID Connect issuer.", show_default=False),
        "",
    ),
    "oidc_audience": (
        _text("--oidc-audience", "NAME", "The audience that such a token must be made for.", show_default=False),
        "",
    ),
    "oidc_roles": (
        _text(
            "--oidc-roles",
            "CLAIM",
            "The claim with the roles, such as groups; values are mendflow:ROLE or mendflow:PROJECT:ROLE.",
            show_default=False,
        ),
        "",
    ),
    "oidc_map": (
        Annotated[
            list[str] | None,
            typer.Option(
                "--oidc-map",
                metavar="VALUE=ROLE",
                help="What a value of that claim stands for: a role, or PROJECT:ROLE; repeat it for the next value.",
                show_default=False,
            ),
        ],
        None,
    ),
    "oidc_name": (
        _text(
            "--oidc-name",
            "CLAIM",
            "The claim by which people are known here; the issuer must not let them change it.",
        ),
        "sub",
    ),
    "oidc_client": (
        _text(
            "--oidc-client",
            "ID",
            "Let browsers sign in at the issuer, which knows this server as the client ID.",
            show_default=False,
        ),
        "",
    ),
    "oidc_client_secret": (
        _text(
            "--oidc-client-secret",
            "FILE",
            "The file with the secret of that client, if it has one; it is read at each sign-in.",
            show_default=False,
        ),
        "",
    ),
    "oidc_scopes": (_text("--oidc-scopes", "WORDS", "What is asked of the issuer about who signs in."), SCOPES),
    "oidc_session": (_text("--oidc-session", "TIME", "How long who signed in there stays so here; 7d at most."), "12h"),
}


def oidc_options(
    oidc_issuer: str,
    oidc_audience: str,
    oidc_roles: str,
    oidc_map: Sequence[str] | None,
    oidc_name: str,
    oidc_client: str,
    oidc_client_secret: str,
    oidc_scopes: str,
    oidc_session: str,
) -> OidcOptions | None:
    """The issuer that was named, if one was."""
    if not oidc_issuer:
        if oidc_audience or oidc_roles or oidc_map or oidc_client:
            raise InvalidRequest(
                "--oidc-audience, --oidc-roles, --oidc-map and --oidc-client are about an issuer: give --oidc-issuer"
            )
        return None
    pairs = [each.rpartition("=") for each in oidc_map or ()]
    if bad := next((each for each, pair in zip(oidc_map or (), pairs, strict=True) if not pair[0]), ""):
        raise InvalidRequest(f"--oidc-map {bad!r}: write VALUE=ROLE or VALUE=PROJECT:ROLE")
    options = OidcOptions(
        issuer=oidc_issuer,
        audience=oidc_audience,
        roles=oidc_roles,
        mapping={value: meant for value, _, meant in pairs},
        name=oidc_name,
        client=_client(oidc_client, oidc_client_secret, oidc_scopes, oidc_session),
    )
    require_options(options)
    return options


def _client(id: str, secret_file: str, scopes: str, session: str) -> OidcClient | None:
    if not id:
        if secret_file:
            raise InvalidRequest("--oidc-client-secret is that of a client: give --oidc-client")
        return None
    session_ms = duration_ms(session)
    if not session_ms:
        raise InvalidRequest(f"--oidc-session {session!r} is no time; write {DURATION_EXAMPLES}")
    return OidcClient(id=id, secret_file=secret_file, scopes=scopes, session_ms=session_ms)


with_oidc = options_as("oidc", OIDC, oidc_options)
"""The command, with these options in place of its parameter `oidc`."""
