"""`mendflow pilot`: the options of a pilot in the units that people write, such as 8GB and 4h."""

import os
from pathlib import Path
from typing import Annotated

import typer

from mendflow.cli.attempt_bounds import bytes_of, ms_of, with_bounds
from mendflow.cli.isolation_options import USUAL_RULES, JobRules, with_job_rules
from mendflow.cli.options import ServerTarget, TokenFile
from mendflow.cli.tls_options import TlsCa, TlsClientCert, TlsClientKey, TlsPin, client_tls
from mendflow.core.caching.policies import POLICIES
from mendflow.core.model.checks import PilotChecks
from mendflow.core.model.data import StorageElement
from mendflow.pilot.bounds import USUAL_BOUNDS, AttemptBounds
from mendflow.pilot.main import run_pilot
from mendflow.pilot.options import PilotOptions, cache_options, read_checks, validated
from mendflow.pilot.options import container_options as options_of_containers

app = typer.Typer()

WORK_FOLDER = ".mendflow-pilot"


@app.command("pilot")
@with_bounds
@with_job_rules
def pilot(
    server: Annotated[
        list[str],
        typer.Option(
            "--server",
            metavar="URL",
            envvar="MENDFLOW_SERVER",
            help="The server to take jobs from; again for others on the same store.",
        ),
    ],
    token_file: TokenFile = "",
    work: Annotated[
        str, typer.Option("--work", metavar="DIR", help="The working folder; each pilot needs its own.")
    ] = WORK_FOLDER,
    slots: Annotated[
        int,
        typer.Option("--jobs", "-j", min=0, metavar="N", help="Jobs to run at the same time; 0: one per CPU."),
    ] = 0,
    site: Annotated[
        str, typer.Option("--site", metavar="NAME", help="The name of the site, for jobs that ask for one.")
    ] = "",
    host: Annotated[
        str,
        typer.Option(
            "--host",
            metavar="NAME",
            help="The name of this machine; default: its host name. A new pilot is called after it.",
        ),
    ] = "",
    cpus: Annotated[
        float | None, typer.Option("--cpus", min=0, metavar="N", help="CPUs to offer; default: all.")
    ] = None,
    memory: Annotated[str, typer.Option("--memory", metavar="SIZE", help="Memory to offer; default: all.")] = "",
    disk: Annotated[str, typer.Option("--disk", metavar="SIZE", help="Disk to offer; default: what is free.")] = "",
    gpus: Annotated[int | None, typer.Option("--gpus", min=0, metavar="N", help="GPUs to offer; default: all.")] = None,
    ttl: Annotated[str, typer.Option("--ttl", metavar="TIME", help="Stop after this time.")] = "",
    idle_exit: Annotated[
        str, typer.Option("--idle-exit", metavar="TIME", help="Stop after being idle for this long.")
    ] = "",
    away_exit: Annotated[
        str, typer.Option("--away-exit", metavar="TIME", help="Stop when the server was unreachable for this long.")
    ] = "",
    grace: Annotated[
        str,
        typer.Option("--grace", metavar="TIME", help="How long running jobs may continue when the pilot is stopped."),
    ] = "5s",
    keep: Annotated[bool, typer.Option("--keep", help="Keep the working folders of the jobs.")] = False,
    bounds: AttemptBounds = USUAL_BOUNDS,
    rules: JobRules = USUAL_RULES,
    allow_address: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-address",
            metavar="ADDRESS",
            help="Fetch inputs of jobs kept apart from this private one: a network, HOST or HOST:PORT; repeatable.",
            show_default=False,
        ),
    ] = None,
    cache_size: Annotated[
        str, typer.Option("--cache-size", metavar="SIZE", help="Size of the cache for input files; 0B: no cache.")
    ] = "10GiB",
    min_free: Annotated[
        str, typer.Option("--min-free", metavar="SIZE", help="How much disk stays free for jobs; default: a tenth.")
    ] = "",
    cache_policy: Annotated[
        str,
        typer.Option("--cache-policy", metavar="NAME", help=f"Which files are evicted first: {', '.join(POLICIES)}."),
    ] = "lru",
    share: Annotated[
        str,
        typer.Option(
            "--share", metavar="WHO", help="Who may read its cache: none, host (pilots on this machine) or site."
        ),
    ] = "host",
    share_address: Annotated[
        str,
        typer.Option(
            "--share-address", metavar="HOST[:PORT]", help="The address where pilots of the site read its cache."
        ),
    ] = "",
    container_runtime: Annotated[
        str,
        typer.Option(
            "--container-runtime",
            metavar="NAME",
            help="What runs containers: auto, none, apptainer, podman or docker; default: the first that is found.",
        ),
    ] = "",
    container_command: Annotated[
        str,
        typer.Option(
            "--container-command", metavar="COMMAND", help="How it is started: 'podman --storage-driver vfs'."
        ),
    ] = "",
    container_options: Annotated[
        str,
        typer.Option("--container-options", metavar="OPTIONS", help="Options for each run of a container."),
    ] = "",
    container_cache: Annotated[
        str,
        typer.Option(
            "--container-cache", metavar="DIR", help="Images that Apptainer fetched; default: ~/.cache/mendflow."
        ),
    ] = "",
    container_mounts: Annotated[
        str,
        typer.Option(
            "--container-mounts", metavar="PATHS", help="What jobs may mount: any (the default), none, /data:/ref."
        ),
    ] = "",
    container_flags: Annotated[
        str,
        typer.Option(
            "--container-flags", metavar="OPTIONS", help="Runtime options that jobs may use; none unless given."
        ),
    ] = "",
    name: Annotated[
        str, typer.Option("--name", metavar="NAME", help="The name under which it was submitted to a batch system.")
    ] = "",
    storage: Annotated[str, typer.Option("--storage", metavar="NAME", help="The nearest storage element.")] = "",
    checks: Annotated[
        str, typer.Option("--checks", metavar="FILE", help="Checks to pass before it takes jobs, as JSON.")
    ] = "",
    needs: Annotated[
        list[str] | None,
        typer.Option("--needs", metavar="PROGRAM", help="A program that must be installed; can be repeated."),
    ] = None,
    needs_disk: Annotated[str, typer.Option("--needs-disk", metavar="SIZE", help="Disk that must be free.")] = "",
    needs_memory: Annotated[str, typer.Option("--needs-memory", metavar="SIZE", help="Memory that must be free.")] = "",
    needs_python: Annotated[
        str, typer.Option("--needs-python", metavar="VERSION", help="The oldest acceptable Python, such as 3.11.")
    ] = "",
    needs_module: Annotated[
        list[str] | None,
        typer.Option("--needs-module", metavar="NAME", help="A Python module that must be installed; can be repeated."),
    ] = None,
    needs_storage: Annotated[
        list[str] | None,
        typer.Option(
            "--needs-storage", metavar="URL", help="A storage element that must be reachable; can be repeated."
        ),
    ] = None,
    needs_script: Annotated[
        str, typer.Option("--needs-script", metavar="COMMAND", help="A command that must succeed.")
    ] = "",
    tls_ca: TlsCa = "",
    tls_client_cert: TlsClientCert = "",
    tls_client_key: TlsClientKey = "",
    tls_pin: TlsPin = "",
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only errors.")] = False,
) -> None:
    """Run a pilot that takes jobs from a server."""
    given = read_checks(Path(checks)) if checks else PilotChecks()
    options = PilotOptions(
        server=",".join(server),
        work=Path(work).absolute(),
        token=ServerTarget(token_file=token_file).token(),
        slots=slots,
        site=site,
        host=host,
        cpus=cpus,
        memory_bytes=bytes_of("--memory", memory),
        disk_bytes=bytes_of("--disk", disk),
        gpus=gpus,
        ttl_ms=ms_of("--ttl", ttl),
        idle_exit_ms=ms_of("--idle-exit", idle_exit),
        away_exit_ms=ms_of("--away-exit", away_exit),
        grace_ms=ms_of("--grace", grace),
        keep=keep,
        keep_failed=bounds.keep_failed,
        log_bytes_max=bounds.log_bytes_max,
        pass_env=rules.pass_env,
        isolation=rules.hiding(os.path.abspath(token_file) if token_file else "")
        .reaching(*allow_address or ())
        .isolation,
        quiet=quiet,
        tls=client_tls(tls_ca, tls_client_cert, tls_client_key, tls_pin),
        name=name,
        storage=storage,
        cache=cache_options(
            space_bytes=bytes_of("--cache-size", cache_size),
            threshold_bytes=bytes_of("--min-free", min_free),
            policy=cache_policy,
            share=share,
            address=share_address,
        ),
        containers=options_of_containers(
            runtime=container_runtime,
            command=container_command,
            options=container_options,
            cache=container_cache,
            mounts=container_mounts,
            flags=container_flags,
        ),
        checks=validated(
            PilotChecks(
                executables=(*given.executables, *(needs or ())),
                disk_bytes=bytes_of("--needs-disk", needs_disk) or given.disk_bytes,
                memory_bytes=bytes_of("--needs-memory", needs_memory) or given.memory_bytes,
                python=needs_python or given.python,
                modules=(*given.modules, *(needs_module or ())),
                storage=(*given.storage, *(StorageElement(name=url, url=url) for url in needs_storage or ())),
                script=needs_script or given.script,
                script_ms=given.script_ms,
            )
        ),
    )
    raise typer.Exit(run_pilot(options))
