"""`mendflow serve`: runs a server until it is stopped, with a pilot if requested."""

import asyncio
import os
import signal
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import typer

from mendflow.cli.alert_rules import alert_rules
from mendflow.cli.attempt_bounds import with_bounds
from mendflow.cli.exit_codes import EnvironmentUnfit
from mendflow.cli.level_waits import level_waits
from mendflow.cli.options import Data, OnUnhandled, ServerTarget, Store
from mendflow.cli.password_warning import warn_of_password
from mendflow.cli.pilot_supervisor import GRACE_S, PilotSupervisor
from mendflow.cli.printing import say
from mendflow.cli.server_file import refuse_if_taken
from mendflow.core.model.errors import Conflict, InvalidRequest, StoreUnavailable
from mendflow.pilot.bounds import USUAL_BOUNDS, AttemptBounds
from mendflow.server.access import AccessToken, check_binding, load_tokens, single_token
from mendflow.wiring import ServerOptions, run, running_server

app = typer.Typer()

PORT = 8642


@app.command("serve")
@with_bounds
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
    lease: Annotated[int, typer.Option("--lease", min=2, metavar="SECONDS", help="How long a lease lasts.")] = 30,
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
    on_unhandled: OnUnhandled = "",
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
    webhooks_to_private: Annotated[
        bool,
        typer.Option(
            "--webhooks-to-private",
            help="Allow webhooks, callbacks and calls to private addresses; default: only on loopback.",
        ),
    ] = False,
    files_root: Annotated[
        list[str] | None,
        typer.Option(
            "--files-root",
            metavar="DIR",
            help="The folder that flows may read files from; without tokens: any folder.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Run a server."""
    own_token = os.environ.get("MENDFLOW_TOKEN", "")
    known: list[AccessToken] = load_tokens(tokens) if tokens else single_token(own_token)
    check_binding(host, known)
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
        lease_ms=lease * 1000,
        data_wait_ms=data_wait * 1000,
        levels_ms=level_waits(level or ()),
        holds_unhandled=on_unhandled == "hold",
        otlp=otlp,
        files_roots=roots if known or roots else None,
        monitor=alert_rules(alert or ()),
        webhooks_to_private=webhooks_to_private,
    )
    warn_of_password(store)
    if not slots and bounds != USUAL_BOUNDS:
        say(
            "bounds of logs and kept folders are for the pilot that --jobs starts, and this server starts none",
            err=True,
        )
    run(_serve(options, slots, grace, bounds))


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


async def _serve(options: ServerOptions, slots: int, grace_s: int, bounds: AttemptBounds) -> None:
    refuse_if_taken(options.data)
    end, hurry = asyncio.Event(), asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, lambda: (hurry if end.is_set() else end).set())
    async with AsyncExitStack() as stack:
        try:
            server = await stack.enter_async_context(running_server(options))
        except Conflict as error:
            raise EnvironmentUnfit(error.message) from error  # the port is taken: an error of the environment
        except StoreUnavailable as error:
            raise StoreUnavailable(
                f"{error.message}. This server has ended: start it again when its store is there"
            ) from error
        if slots:
            supervisor = PilotSupervisor(
                server, options.data, slots=slots, keep=False, on_failure=say, grace_s=grace_s, bounds=bounds
            )
            stack.push_async_callback(_stop_pilot, supervisor, hurry)
            keeping = asyncio.create_task(supervisor.supervise())
            stack.callback(keeping.cancel)
        say(f"mendflow serves {server.url} from {server.place}; Ctrl-C ends it")
        if not slots:
            pilot = f"mendflow pilot --server {server.url}"
            say(f"it runs no jobs itself: start it with --jobs N, or start pilots: {pilot}", err=True)
        await end.wait()
        health = await server.domain.health()
        say("stopping; nothing is lost" if health.status == "ok" else f"stopping; its store is away: {health.message}")


async def _stop_pilot(supervisor: PilotSupervisor, hurry: asyncio.Event) -> None:
    """Let running jobs end within their grace period, unless stopped a second time."""

    async def heed() -> None:
        await hurry.wait()
        supervisor.stop_now()

    hurrying = asyncio.create_task(heed())
    await supervisor.stop()
    hurrying.cancel()
