"""`mendflow serve`: runs a server until it is stopped, with a pilot if requested."""

import asyncio
import logging
import os
import signal
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Annotated, Final
from urllib.parse import urlsplit

import typer

from mendflow.cli.alert_rules import alert_rules
from mendflow.cli.attempt_bounds import with_bounds
from mendflow.cli.embedded_server import enter_when_free
from mendflow.cli.exit_codes import EnvironmentUnfit
from mendflow.cli.isolation_options import USUAL_RULES, JobRules, with_job_rules
from mendflow.cli.level_waits import level_waits
from mendflow.cli.log_options import with_log
from mendflow.cli.mail_options import MailFrom, Smtp, SmtpPasswordFile
from mendflow.cli.oidc_options import with_oidc
from mendflow.cli.options import Data, LiveInputsMb, OnUnhandledByDefault, ServerTarget, Store
from mendflow.cli.password_warning import warn_of_password
from mendflow.cli.pilot_supervisor import GRACE_S, PilotSupervisor
from mendflow.cli.printing import say
from mendflow.cli.secret_options import SecretsFrom, SecretsKey
from mendflow.cli.server_file import refuse_if_taken
from mendflow.cli.slots_for_one import end_slots_for_several
from mendflow.cli.source_options import allowed_sources
from mendflow.cli.tls_options import TlsCa, TlsClientCert, TlsClientKey, client_tls, server_tls
from mendflow.core.model.alerts import MailOptions
from mendflow.core.model.errors import Conflict, Forbidden, InvalidRequest, RequestError, StoreUnavailable
from mendflow.core.model.principals import Principal
from mendflow.core.model.projects import CASES_PER_START, LIVE_INPUTS_BYTES
from mendflow.pilot.bounds import USUAL_BOUNDS, AttemptBounds
from mendflow.pilot.isolation.hidden_process import hide_memory
from mendflow.pilot.isolation.options import THREE_WAYS
from mendflow.server.access import (
    AccessToken,
    check_binding,
    is_for_several,
    load_tokens,
    require_strong,
    single_token,
)
from mendflow.server.log_output import LogOptions, LogOutput
from mendflow.server.oidc import OidcOptions
from mendflow.server.web_app import WEB_FILES, what_is_missing
from mendflow.wiring import RunningServer, ServerOptions, allowed_address, run

NO_TOKENS_FOR_JOBS = (
    "jobs in a sandbox have the account of this server and reach it over the network, and without tokens that account"
    " may do everything here: give --tokens FILE or MENDFLOW_TOKEN, or --sandbox-network none"
)

app = typer.Typer()
log = logging.getLogger("mendflow.server")

PORT = 8642

NOT_FOR_SEVERAL: Final = (
    "more than one person or program could let jobs run at this server, and the jobs that it starts itself would run as"
    " the server: each could read the others' files, the store and the tokens. Say how they are kept apart:"
    f" {THREE_WAYS}. Or leave --jobs away, and start pilots elsewhere"
)


@app.command("serve")
@with_bounds
@with_job_rules
@with_log
@with_oidc
def serve(
    host: Annotated[str, typer.Option("--host", metavar="HOST", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, metavar="PORT", help="The port to listen on; 0: any free one.")
    ] = PORT,
    url: Annotated[
        str,
        typer.Option(
            "--url",
            metavar="URL",
            help="The address where others reach this server, if it differs.",
            show_default=False,
        ),
    ] = "",
    domain: Annotated[
        str,
        typer.Option(
            "--domain",
            metavar="NAME",
            help="The name of this domain, for others; default: the one before, or the machine's.",
            show_default=False,
        ),
    ] = "",
    data: Data = "",
    store: Store = "",
    tokens: Annotated[
        str,
        typer.Option(
            "--tokens",
            metavar="FILE",
            help="A file with tokens and their roles; default: the one token in MENDFLOW_TOKEN.",
            show_default=False,
        ),
    ] = "",
    oidc: OidcOptions | None = None,
    slots: Annotated[
        int,
        typer.Option(
            "--jobs", "-j", min=0, metavar="N", help="Also run a pilot here, with this many jobs at the same time."
        ),
    ] = 0,
    grace: Annotated[
        int,
        typer.Option(
            "--grace", min=0, metavar="SECONDS", help="How long running jobs may continue when the server is stopped."
        ),
    ] = GRACE_S,
    bounds: AttemptBounds = USUAL_BOUNDS,
    rules: JobRules = USUAL_RULES,
    lease: Annotated[int, typer.Option("--lease", min=2, metavar="SECONDS", help="How long a lease lasts.")] = 30,
    domain_lease: Annotated[
        int,
        typer.Option(
            "--domain-lease",
            min=0,
            metavar="SECONDS",
            help="How long a lease on work in another domain lasts; 0: four leases, and a minute at least.",
        ),
    ] = 0,
    data_wait: Annotated[
        int,
        typer.Option(
            "--data-wait", min=0, metavar="SECONDS", help="How long a job waits for a pilot that has its input files."
        ),
    ] = 3,
    otlp: Annotated[
        str,
        typer.Option(
            "--otlp",
            metavar="URL",
            envvar=["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"],
            help="Send traces to this collector, by OTLP over HTTP.",
            show_default=False,
            show_envvar=False,
        ),
    ] = "",
    requests_per_second: Annotated[
        int,
        typer.Option(
            "--requests-per-second",
            min=0,
            metavar="N",
            help="How many requests one token may send; administrators and pilots any number. 0: everybody any number.",
        ),
    ] = 100,
    cases_per_start: Annotated[
        int,
        typer.Option(
            "--cases-per-start",
            min=1,
            metavar="N",
            help="How many live cases one start may have at once, with all that they call.",
        ),
    ] = CASES_PER_START,
    live_inputs_mb: LiveInputsMb = LIVE_INPUTS_BYTES // 10**6,
    on_unhandled: OnUnhandledByDefault = "",
    level: Annotated[
        list[str] | None,
        typer.Option(
            "--level",
            metavar="TIME",
            help="Wait of a retry level; repeat it for the next level.",
            show_default=False,
        ),
    ] = None,
    alert: Annotated[
        list[str] | None,
        typer.Option(
            "--alert",
            metavar="NAME=VALUE",
            help="The limit of an alert; see docs/do/monitoring.md.",
            show_default=False,
        ),
    ] = None,
    secrets_key: SecretsKey = "",
    secrets_from: SecretsFrom = None,
    smtp: Smtp = "",
    smtp_password_file: SmtpPasswordFile = "",
    mail_from: MailFrom = "",
    webhooks_to_private: Annotated[
        bool,
        typer.Option(
            "--webhooks-to-private",
            help="Call any private address that others choose; default: without tokens, on loopback.",
        ),
    ] = False,
    allow_address: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-address",
            metavar="ADDRESS",
            help="Call this private one, and let the pilot of --jobs fetch files from it: a network, HOST or HOST:PORT;"
            " repeat it for the next.",
            show_default=False,
        ),
    ] = None,
    allow_sources: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-sources",
            metavar="KIND",
            help="Let rules read this kind of source: command, sql or file; repeat it for the next.",
            show_default=False,
        ),
    ] = None,
    tls_cert: Annotated[
        str,
        typer.Option("--tls-cert", metavar="FILE", help="Speak TLS, with this certificate.", show_default=False),
    ] = "",
    tls_key: Annotated[
        str,
        typer.Option("--tls-key", metavar="FILE", help="Its key, if that is in another file.", show_default=False),
    ] = "",
    tls_client_ca: Annotated[
        str,
        typer.Option(
            "--tls-client-ca",
            metavar="FILE",
            help="Demand a certificate of these CAs of whoever asks.",
            show_default=False,
        ),
    ] = "",
    tls_ca: TlsCa = "",
    tls_client_cert: TlsClientCert = "",
    tls_client_key: TlsClientKey = "",
    audit: Annotated[
        bool, typer.Option("--audit/--no-audit", help="Put on record who did what; see docs/do/audit.md.")
    ] = True,
    audit_days: Annotated[
        int,
        typer.Option("--audit-days", min=0, metavar="DAYS", help="How long that is kept; 0: for ever."),
    ] = 0,
    files_root: Annotated[
        list[str] | None,
        typer.Option(
            "--files-root",
            metavar="DIR",
            help="The folder that flows may read files from; without tokens: any folder.",
            show_default=False,
        ),
    ] = None,
    log_to: LogOptions | None = None,
) -> None:
    """Run a server."""
    own_token = os.environ.get("MENDFLOW_TOKEN", "")
    if not tokens:
        require_strong(own_token)
    known: list[AccessToken] = load_tokens(tokens) if tokens else single_token(own_token)
    check_binding(host, known, issuer=oidc is not None)
    if slots and is_for_several(known, issuer=oidc is not None) and not rules.isolation.is_set:
        raise Forbidden(NOT_FOR_SEVERAL)
    if slots and rules.isolation.shares_account and not known and oidc is None:
        raise Forbidden(NO_TOKENS_FOR_JOBS)
    _require_address(url)
    roots = tuple(Path(root).absolute() for root in files_root or ())
    options = ServerOptions(
        data=ServerTarget(data=data).own_folder,
        store=store,
        host=host,
        port=port,
        url=url,
        domain=domain,
        tokens=tuple(known),
        oidc=oidc,
        requests_per_s=requests_per_second,
        cases_per_start=cases_per_start,
        live_inputs_bytes=live_inputs_mb * 10**6,
        lease_ms=lease * 1000,
        domain_lease_ms=domain_lease * 1000,
        data_wait_ms=data_wait * 1000,
        levels_ms=level_waits(level or ()),
        holds_unhandled=on_unhandled == "hold",
        otlp=otlp,
        files_roots=roots if known or oidc or roots else None,
        monitor=alert_rules(alert or ()),
        secrets_key=Path(secrets_key) if secrets_key else None,
        secrets_from=tuple(secrets_from or ()),
        mail=MailOptions(smtp=smtp, sender=mail_from, password_file=smtp_password_file),
        webhooks_to_private=webhooks_to_private,
        allowed_addresses=tuple(allowed_address(each) for each in allow_address or ()),
        sources=allowed_sources(allow_sources or []),
        tls=server_tls(tls_cert, tls_key, tls_client_ca),
        client_tls=client_tls(tls_ca, tls_client_cert, tls_client_key),
        audit=audit,
        audit_days=audit_days,
    )
    warn_of_password(store)
    if not store and (above := ServerTarget(data=data).above) is not None:
        say(
            f"this server begins a data folder here, {options.data}; what was set in {above} is not known to it:"
            f" --data-dir {os.path.relpath(above)} serves that one",
            err=True,
        )
    if not slots and bounds != USUAL_BOUNDS:
        say(
            "bounds of logs and kept folders are for the pilot that --jobs starts, and this server starts none",
            err=True,
        )
    client_secret = oidc.client.secret_file if oidc is not None and oidc.client is not None else ""
    own = [str(options.data.absolute()), tokens, secrets_key, smtp_password_file, client_secret]
    own.append(log_to.file if log_to else "")
    rules = rules.hiding(*(os.path.abspath(path) for path in own if path)).reaching(*allow_address or ())
    output = LogOutput(log_to) if log_to is not None else None
    try:
        run(_serve(options, slots, grace, bounds, rules, tokens, output))
    finally:
        if output is not None:
            output.close()


def _require_address(url: str) -> None:
    """Require an address that other servers can reach: they forward requests for cases that are here."""
    try:
        parts = urlsplit(url)
        fits = not url or (parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0)
    except ValueError:
        fits = False
    if not fits:
        raise InvalidRequest(
            f"--url {url!r} is not the address of a server: write one such as http://one.example.org:8642"
        )


async def _serve(
    options: ServerOptions,
    slots: int,
    grace_s: int,
    bounds: AttemptBounds,
    rules: JobRules,
    token_file: str,
    output: LogOutput | None,
) -> None:
    refuse_if_taken(options.data)
    hide_memory()
    for_one = slots > 0 and not rules.isolation.is_set
    end, hurry = asyncio.Event(), asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, lambda: (hurry if end.is_set() else end).set())
    has_log_file = output is not None and output.has_file
    reads_files = bool(token_file) or has_log_file
    # A terminal that is closed ends the server in good order. Files that it has just read need not be read again.
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, (lambda: None) if reads_files else end.set)
    async with AsyncExitStack() as stack:
        try:
            server = await enter_when_free(stack, options, end)
        except Conflict as error:
            raise EnvironmentUnfit(error.message) from error  # the port is taken: an error of the environment
        except StoreUnavailable as error:
            raise StoreUnavailable(
                f"{error.message}. This server has ended: start it again when its store is there"
            ) from error
        if token_file or options.tls is not None or has_log_file:
            asyncio.get_running_loop().add_signal_handler(
                signal.SIGHUP, _read_again, server, token_file, for_one, output
            )
        if for_one:
            keep_for_one(server)
        if slots:
            supervisor = PilotSupervisor(
                server,
                options.data,
                slots=slots,
                keep=False,
                on_failure=say,
                grace_s=grace_s,
                bounds=bounds,
                words=rules.words,
                work=Path(f"{options.data.absolute()}.jobs") if rules.isolation.confines else None,
            )
            stack.push_async_callback(_stop_pilot, supervisor, hurry)
            keeping = asyncio.create_task(supervisor.supervise())
            stack.callback(keeping.cancel)
            if for_one:
                ending = asyncio.create_task(end_slots_for_several(server, supervisor, keeping, NOT_FOR_SEVERAL))
                stack.callback(ending.cancel)
        say(f"mendflow serves {server.url} from {server.place}; Ctrl-C ends it")
        say(what_is_missing(WEB_FILES) or f"the web app is at {server.url}; mendflow ui opens it, signed in", err=True)
        if not slots:
            pilot = f"mendflow pilot --server {server.url}"
            say(f"it runs no jobs itself: start it with --jobs N, or start pilots: {pilot}", err=True)
        await end.wait()
        health = await server.domain.health()
        say("stopping; nothing is lost" if health.status == "ok" else f"stopping; its store is away: {health.message}")


def keep_for_one(server: RunningServer) -> None:
    """Refuse a server that others use by tokens in its store, and from now on tokens that would let them."""
    assert server.access is not None
    serves_several = server.access.serves_several

    def demand(*new: Principal) -> None:
        if serves_several(*new):
            raise Forbidden(NOT_FOR_SEVERAL)

    demand()
    server.server.access_tokens.demand_new = lambda new: demand(new) if new.may_let_jobs_run else None


def _read_again(server: RunningServer, token_file: str, for_one: bool, output: LogOutput | None) -> None:
    """Read the files again that the server was started with, and open its log file again: first that, so that it tells
    of the others."""
    if output is not None:
        output.reopen()
    server.reload_certificate()
    if token_file:
        read_tokens_again(server, token_file, for_one=for_one)


def read_tokens_again(server: RunningServer, token_file: str, *, for_one: bool) -> None:
    """Take the tokens that stand in the token file by now. A file with an error changes nothing, nor one with tokens of
    several at a server that is `for_one`."""
    assert server.access is not None
    try:
        found = load_tokens(token_file)
    except RequestError as error:
        log.error("the tokens stay as they were: %s", error.message)
        return
    before = server.access.tokens
    server.access.replace_tokens(found)
    if for_one and server.access.serves_several():
        server.access.replace_tokens(before)
        log.error("the tokens stay as they were: %s", NOT_FOR_SEVERAL)
        return
    log.warning("the token file %s was read again: it has %d tokens", token_file, len(found))


async def _stop_pilot(supervisor: PilotSupervisor, hurry: asyncio.Event) -> None:
    """Let running jobs end within their grace period, unless stopped a second time."""

    async def heed() -> None:
        await hurry.wait()
        supervisor.stop_now()

    hurrying = asyncio.create_task(heed())
    await supervisor.stop()
    hurrying.cancel()
