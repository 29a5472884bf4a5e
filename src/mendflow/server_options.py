"""What the owner of a server says about it, and what the server leaves in its data folder for commands that look for
it."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from mendflow.address_guard import AddressGuard, AllowedAddress, is_loopback
from mendflow.client import server_file
from mendflow.core.model.alerts import MailOptions
from mendflow.core.model.principals import account_teller
from mendflow.core.model.projects import CASES_PER_START, LIVE_INPUTS_BYTES
from mendflow.core.model.sources import SourceKind
from mendflow.core.scheduling.data_wait import DATA_WAIT_MS
from mendflow.local_accounts import account_name
from mendflow.services.observe.monitor_settings import MonitorSettings
from mendflow.services.recovery.levels import DEFAULT_WAITS_MS
from mendflow.services.scheduling.sites.pilot_monitor import LOOK_MS
from mendflow.tls import ClientTls, ServerTls

if TYPE_CHECKING:
    from mendflow.server.access import AccessToken
    from mendflow.server.oidc import OidcOptions


class ServerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """`files_roots` are the folders that flows may read local files from; None: any, as for a user's own server.
    `store` is the URL of the store; without it the store is in the data folder. `url` is the public address of this
    server, if that is not where it listens; `domain` the name of the domain that it serves."""

    data: Path
    store: str = ""
    host: str = "127.0.0.1"
    port: int = 0
    url: str = ""
    domain: str = ""
    tokens: "tuple[AccessToken, ...]" = ()
    oidc: "OidcOptions | None" = None  # the issuer whose tokens count too
    requests_per_s: float = 100  # of one principal that is no administrator; 0: any number
    lease_ms: int = 30_000
    domain_lease_ms: int = 0
    losses_max: int = 20
    cases_per_start: int = CASES_PER_START  # live cases that one start may have at once, with all that they call
    live_inputs_bytes: int = LIVE_INPUTS_BYTES  # memory for the inputs of each project's live cases; 0: any
    files_roots: tuple[Path, ...] | None = ()
    recovery: bool = True  # whether rules are asked at all
    learning: bool = True  # whether what ends is counted, for proposals and sizes
    levels_ms: tuple[int, ...] = DEFAULT_WAITS_MS
    holds_unhandled: bool = False  # whether a case whose failure no rule takes up is held for a person
    monitor: MonitorSettings = MonitorSettings()  # the thresholds of alerts
    mail: MailOptions = MailOptions()
    secrets_key: Path | None = None  # the key of the secrets in the store; None: a file of the data folder
    secrets_from: tuple[str, ...] = ()  # folders and prefixes of variables that secrets are read from
    webhooks_to_private: bool = False  # whether private addresses may be called that others choose
    allowed_addresses: tuple[AllowedAddress, ...] = ()  # and which of them, also where the others may not
    sources: frozenset[SourceKind] = frozenset()  # the guarded kinds of sources that conditions may read
    tls: ServerTls | None = None  # what it shows, if it speaks TLS
    client_tls: ClientTls = ClientTls()  # whom it trusts when it asks other servers, and what it shows them
    audit: bool = False  # whether it is put on record who did what
    audit_days: int = 0  # how long that is kept; 0: for ever
    otlp: str = ""  # the collector of traces; empty: none
    sites_look_ms: int = LOOK_MS  # the interval between looks at sites
    data_wait_ms: int = DATA_WAIT_MS  # how long a job is kept back for an idle pilot that has its data
    continues_found: bool = True  # whether unfinished cases that it finds go on without being asked for
    schedules: bool = True  # whether it starts cases at the due times of schedules
    announce: bool = True  # whether commands on this machine are to find it by its folder
    mostly_pilots: bool = False  # whether hardly anybody but its pilot will use HTTP
    stays: bool = (
        False  # whether it takes flows until it is stopped; others do anyway, unless they are mostly for pilots
    )
    listen: bool = True  # whether it serves HTTP; on a store that others share it does anyway

    @property
    def teller(self) -> str:
        """The account that runs it, as one who says where a case came from."""
        return account_teller(account_name(os.geteuid()))

    @property
    def is_own(self) -> bool:
        """Whether it is for whoever runs it, on his own machine, unless the store has tokens of others."""
        return is_loopback(self.host) and not self.tokens and self.oidc is None


class ServerAnnouncement(msgspec.Struct, frozen=True, kw_only=True):
    """The content of server.json. Its token is valid only for pilots: jobs can read this file. `stays`: it takes flows
    until it is stopped, where others end with the case that they run."""

    url: str
    pid: int
    token: str = ""
    stays: bool = False
    tls_pin: str = ""


def outgoing_guard(options: ServerOptions, alone: Callable[[], bool]) -> AddressGuard:
    """Whoever has a server for himself, on his own machine, reaches what it reaches anyway. Where there are tokens,
    somebody else may use it; `alone` says whether the store has none of these by now."""
    return AddressGuard(
        private=options.webhooks_to_private,
        allowed=options.allowed_addresses,
        alone=alone if options.is_own else None,
    )


def own_pin(options: ServerOptions) -> str:
    """By which whoever is on this machine knows this server, whatever the name in its certificate, and also when that
    is replaced."""
    return f"file:{Path(options.tls.cert).absolute()}" if options.tls is not None else ""


def write_server_file(data: Path, content: ServerAnnouncement) -> None:
    """Write the file atomically, readable only by its owner."""
    draft = data / f"server.json.{content.pid}"
    descriptor = os.open(draft, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as out:
        out.write(msgspec.json.encode(content))
    os.replace(draft, data / "server.json")


def find_server(data: Path) -> ServerAnnouncement | None:
    """The server that runs on this data folder, found by the same rule as commands use."""
    found = server_file.find_server(data)
    return ServerAnnouncement(**msgspec.structs.asdict(found)) if found else None
