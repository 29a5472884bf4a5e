"""Options for TLS of commands that run for long. Other commands take the same from the environment."""

from typing import Annotated

import typer

from mendflow.core.model.errors import InvalidRequest
from mendflow.tls import (
    CA_VARIABLE,
    CERT_VARIABLE,
    KEY_VARIABLE,
    NO_TLS_SETTINGS,
    PIN_VARIABLE,
    BadTlsFile,
    ClientTls,
    ServerCertificate,
    ServerTls,
)

TlsCa = Annotated[
    str,
    typer.Option("--tls-ca", metavar="FILE", envvar=CA_VARIABLE, help="The CAs of servers.", show_default=False),
]
TlsClientCert = Annotated[
    str,
    typer.Option(
        "--tls-client-cert", metavar="FILE", envvar=CERT_VARIABLE, help="A certificate to show.", show_default=False
    ),
]
TlsClientKey = Annotated[
    str, typer.Option("--tls-client-key", metavar="FILE", envvar=KEY_VARIABLE, help="Its key.", show_default=False)
]
TlsPin = Annotated[
    str,
    typer.Option(
        "--tls-pin",
        metavar="PIN",
        envvar=PIN_VARIABLE,
        help="The server's certificate: sha256:..., or file:PATH.",
        show_default=False,
    ),
]


def client_tls(ca: str, cert: str, key: str, pin: str = "") -> ClientTls:
    """The settings, whose files are there and can be used. Where there are none, the CAs of the system are read when
    somebody asks a server over TLS, and not for each command."""
    settings = ClientTls(ca, cert, key, pin)
    try:
        if settings != NO_TLS_SETTINGS:
            settings.context()
    except BadTlsFile as error:
        raise InvalidRequest(str(error)) from None
    return settings


def server_tls(cert: str, key: str, client_ca: str) -> ServerTls | None:
    if not cert:
        if key or client_ca:
            raise InvalidRequest("--tls-key and --tls-client-ca need the certificate of the server: --tls-cert FILE")
        return None
    settings = ServerTls(cert, key, client_ca)
    try:
        ServerCertificate(settings)
    except BadTlsFile as error:
        raise InvalidRequest(str(error)) from None
    return settings
