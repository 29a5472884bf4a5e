"""The options of a pilot, from its own command line (for programs) or from `mendflow pilot` (for people)."""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final, get_args

import msgspec

from mendflow.core.caching.policies import POLICIES, policy_by_name
from mendflow.core.model.checks import PilotChecks
from mendflow.core.model.data import Sharing
from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.units import DURATION_EXAMPLES, SIZE_EXAMPLES, duration_ms, size_bytes
from mendflow.pilot.agent.site_checks import version
from mendflow.pilot.bounds import (
    KEEP_FAILED_BYTES,
    KEEP_FAILED_MAX,
    KEEP_FAILED_MS,
    LOG_BYTES_MAX,
    KeepLimits,
    keep_limits,
    log_bytes,
)
from mendflow.pilot.cache.shared import CacheOptions
from mendflow.pilot.containers.runtime import ContainerOptions, options_from
from mendflow.pilot.isolation.options import NOT_ISOLATED, Isolation, isolation_of
from mendflow.pilot.own_secrets import take_secret
from mendflow.tls import ClientTls, or_environment

KEPT_VARIABLES: Final = {
    "age": ("MENDFLOW_KEEP_FAILED", str(KEEP_FAILED_MS)),
    "size": ("MENDFLOW_KEEP_FAILED_SIZE", str(KEEP_FAILED_BYTES)),
    "number": ("MENDFLOW_KEEP_FAILED_MAX", str(KEEP_FAILED_MAX)),
    "log": ("MENDFLOW_LOG_SIZE", str(LOG_BYTES_MAX)),
}
"""What bounds logs and kept folders where no option does, and what holds where the variable is not set either."""


TLS_HELP: Final = {
    "ca": "a file with the CAs of servers",
    "client-cert": "the certificate that servers want to see",
    "client-key": "the key of that certificate",
    "pin": "the certificate that the server shows: sha256:..., or file:PATH",
}
"""The options for TLS; each is also a variable."""


CONTAINER_HELP: Final = {
    "runtime": "what runs containers: auto, none, apptainer, podman or docker",
    "command": "how that is started, such as 'podman --storage-driver vfs'",
    "options": "options for each run of a container, such as '--ulimit nofile=1024:1024'",
    "cache": "folder for images that Apptainer fetches, and for notes of what runs",
    "mounts": "what jobs may mount: any, none, or paths separated by ':'",
    "flags": "options of the runtime that jobs may use: any, none, or options separated by commas",
}
"""The options for containers; each is also a variable, MENDFLOW_CONTAINER_RUNTIME and so on."""


class PilotOptions(msgspec.Struct, frozen=True, kw_only=True):
    """`server` has one or more addresses separated by commas. `slots` of 0 means one per processor. `host` names the
    machine if its own name is not unique. Capacities of None are measured. Times of 0 mean no limit: `ttl_ms` ends the
    pilot after that time, `idle_exit_ms` after so long without a job, `away_exit_ms` after so long without a server.
    `grace_ms` is how long running jobs may continue when the pilot is asked to leave. `server_file` is a file in which
    the server publishes its address; it is read when the server is away. `name` is the submission's name in a batch
    system and `name_secret` what was handed over with it, `storage` the nearest storage element, `checks` what is
    verified before the pilot registers, and `cache` how files are kept for later jobs and shared. `containers` says
    what runs containers, and what jobs may ask of it. `pass_env` are variables of its environment that its jobs get
    beside the usual ones, `isolation` is as whom they run. `keep` keeps the folders of all attempts for ever,
    `keep_failed` those of failed ones within its limits; of a log no more than `log_bytes_max` are kept."""

    server: str
    work: Path
    token: str = ""
    slots: int = 0
    site: str = ""
    host: str = ""
    cpus: float | None = None
    memory_bytes: int | None = None
    disk_bytes: int | None = None
    gpus: int | None = None
    ttl_ms: int = 0
    idle_exit_ms: int = 0
    away_exit_ms: int = 0
    grace_ms: int = 5_000
    keep: bool = False
    keep_failed: KeepLimits = KeepLimits()
    log_bytes_max: int = LOG_BYTES_MAX
    quiet: bool = False
    server_file: Path | None = None
    name: str = ""
    name_secret: str = ""
    storage: str = ""
    checks: PilotChecks = PilotChecks()
    cache: CacheOptions = CacheOptions()
    containers: ContainerOptions = ContainerOptions()
    pass_env: tuple[str, ...] = ()
    isolation: Isolation = NOT_ISOLATED
    tls: ClientTls = ClientTls()


def parse(arguments: Sequence[str]) -> PilotOptions:
    parser = argparse.ArgumentParser(prog="python -m mendflow.pilot", description="Run a pilot: it pulls jobs.")
    parser.add_argument(
        "--server",
        required=True,
        action="append",
        help="address of a server, such as http://127.0.0.1:8765; repeat for several",
    )
    parser.add_argument("--work", required=True, type=Path, help="folder for jobs and results; kept over restarts")
    parser.add_argument("--token", default=take_secret("MENDFLOW_TOKEN"), help="or in MENDFLOW_TOKEN")
    parser.add_argument("--token-file", type=Path, help="a file with the token, where others cannot read it")
    parser.add_argument(
        "--jobs", "-j", dest="slots", type=int, default=0, help="jobs at a time (default: one per processor)"
    )
    parser.add_argument("--site", default="", help="name of the site, for jobs that ask for one")
    parser.add_argument("--host", default="", help="name of the machine (default: its own)")
    parser.add_argument("--cpus", type=float)
    parser.add_argument("--memory-bytes", type=int)
    parser.add_argument("--disk-bytes", type=int)
    parser.add_argument("--gpus", type=int)
    parser.add_argument("--ttl-ms", type=int, default=0, help="leave after this time")
    parser.add_argument("--idle-exit-ms", type=int, default=0, help="leave after this time without a job")
    parser.add_argument("--away-exit-ms", type=int, default=0, help="leave after this time without a server")
    parser.add_argument("--grace-ms", type=int, default=5_000, help="how long jobs may continue when asked to leave")
    parser.add_argument("--keep", action="store_true", help="keep the folders of finished attempts")
    kept = {name: os.environ.get(variable, usual) for name, (variable, usual) in KEPT_VARIABLES.items()}
    parser.add_argument(
        "--keep-failed", type=_time_ms, default=kept["age"], help="keep those of failed ones for this time"
    )
    parser.add_argument("--keep-failed-size", type=_size, default=kept["size"], help="and no more than this")
    parser.add_argument("--keep-failed-max", type=int, default=kept["number"], help="nor more than so many")
    parser.add_argument("--log-size", type=_size, default=kept["log"], help="how much is kept of what a job prints")
    parser.add_argument("--quiet", action="store_true")
    parser.add_argument("--server-file", type=Path, help="a file in which the server publishes its address")
    parser.add_argument("--name", default="", help="name of the submission in the batch system")
    parser.add_argument("--name-secret-file", type=Path, help="a file with what proves this name to the server")
    parser.add_argument("--storage", default="", help="the nearest storage element")
    parser.add_argument("--checks", type=Path, help="a JSON file of checks to make before it registers")
    parser.add_argument("--cache-size", type=_size, help="disk space for files that are kept for later jobs")
    parser.add_argument("--min-free", type=_size, help="how much of that stays free (default: a tenth)")
    parser.add_argument(
        "--cache-policy", choices=sorted(POLICIES), help="which files are removed first when space is needed"
    )
    parser.add_argument(
        "--share", choices=get_args(Sharing), help="who may use the cache: pilots of this host, or site"
    )
    parser.add_argument("--share-address", help="where pilots of the site reach this one: HOST or HOST:PORT")
    parser.add_argument("--pass-env", action="append", default=[], help="a variable that jobs get; '*' for all")
    parser.add_argument("--jobs-as", default="", help="the account that jobs run under, or owner")
    parser.add_argument("--accounts", action="append", default=[], help="with --jobs-as owner: which accounts")
    parser.add_argument("--sandbox", default="", help="none, bubblewrap or containers")
    parser.add_argument("--sandbox-network", default="", help="host or none")
    parser.add_argument("--sandbox-show", action="append", default=[], help="a path that sandboxed jobs may read")
    parser.add_argument("--allow-address", action="append", default=[], help="a private one that inputs may come from")
    parser.add_argument("--sandbox-hide", action="append", default=[], help="a path that they do not see")
    for name in CONTAINER_HELP:
        parser.add_argument(f"--container-{name}", help=CONTAINER_HELP[name])
    for name in TLS_HELP:
        parser.add_argument(f"--tls-{name}", default="", help=TLS_HELP[name])
    found = vars(parser.parse_args(arguments))
    words = [name.replace("-", "_") for name in TLS_HELP]
    found["tls"] = tls_options(**{word: found.pop(f"tls_{word}") for word in words})
    token_file, checks, secret_file = (found.pop(each) for each in ("token_file", "checks", "name_secret_file"))
    try:
        found["log_bytes_max"] = log_bytes(found.pop("log_size"))
        found["keep_failed"] = keep_limits(
            found.pop("keep_failed"), found.pop("keep_failed_size"), found.pop("keep_failed_max")
        )
        found["cache"] = cache_options(
            space_bytes=found.pop("cache_size"),
            threshold_bytes=found.pop("min_free"),
            policy=found.pop("cache_policy"),
            share=found.pop("share"),
            address=found.pop("share_address"),
        )
        found["containers"] = container_options(**{name: found.pop(f"container_{name}") for name in CONTAINER_HELP})
        hidden = [*found.pop("sandbox_hide"), *(str(each) for each in (token_file, secret_file) if each is not None)]
        found["pass_env"] = tuple(found["pass_env"])
        found["isolation"] = isolation_of(
            jobs_as=found.pop("jobs_as"),
            accounts=found.pop("accounts"),
            sandbox=found.pop("sandbox"),
            network=found.pop("sandbox_network"),
            shown=found.pop("sandbox_show"),
            addresses=found.pop("allow_address"),
            hidden=hidden,
        )
        if token_file is not None:
            found["token"] = token_file.read_text(encoding="utf-8").strip()
        if secret_file is not None:
            found["name_secret"] = secret_file.read_text(encoding="utf-8").strip()
        found["checks"] = PilotChecks() if checks is None else read_checks(checks)
    except (OSError, ValueError, InvalidRequest) as error:
        parser.error(str(error))
    return PilotOptions(**{**found, "server": ",".join(found["server"])})


def _time_ms(text: str) -> int:
    """In milliseconds, or as people write it."""
    time_ms = int(text) if text.isdecimal() else duration_ms(text)
    if time_ms is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no time; write milliseconds, or one like {DURATION_EXAMPLES}")
    return time_ms


def _size(text: str) -> int:
    """A size in bytes, or as people write it."""
    size = int(text) if text.isdecimal() else size_bytes(text)
    if size is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size; write bytes, or one like {SIZE_EXAMPLES}")
    return size


def cache_options(**given: str | int | None) -> CacheOptions:
    """The cache options that were given; None means not given. Raises for invalid ones."""
    try:
        options = msgspec.convert({name: value for name, value in given.items() if value is not None}, CacheOptions)
    except msgspec.ValidationError:
        choices = ", ".join(get_args(Sharing))
        raise InvalidRequest(f"a cache cannot be shared with {given.get('share')!r}; there are {choices}") from None
    policy_by_name(options.policy)
    if min(options.space_bytes, options.threshold_bytes or 0) < 0:
        raise InvalidRequest("the sizes of a cache cannot be negative")
    return options


def tls_options(*, ca: str, client_cert: str, client_key: str, pin: str) -> ClientTls:
    """What was given for TLS; what was not is as the environment says."""
    return or_environment(ClientTls(ca, client_cert, client_key, pin))


def container_options(**given: str | None) -> ContainerOptions:
    """The options for containers that were given; what was not is as the environment says."""
    said = {name: value for name, value in given.items() if value}
    return msgspec.structs.replace(options_from(os.environ), **said)


def cache_flaw(cache: CacheOptions) -> str:
    """Why a cache keeps nothing although it has space; empty if it does. Others on the host may have space for it."""
    if not cache.space_bytes or (cache.threshold_bytes or 0) < cache.space_bytes:
        return ""
    return f"of the {cache.space_bytes} bytes of the cache, {cache.threshold_bytes} must stay free: it keeps no files"


def read_checks(path: Path) -> PilotChecks:
    try:
        return validated(msgspec.json.decode(path.read_bytes(), type=PilotChecks))
    except (OSError, msgspec.MsgspecError) as error:
        raise InvalidRequest(f"{path} is not a valid file of checks: {error}") from None


def validated(checks: PilotChecks) -> PilotChecks:
    """The checks, if they are valid."""
    if checks.python and version(checks.python) is None:
        raise InvalidRequest(f"{checks.python!r} is not a version of Python; write one like 3.11", field="python")
    if min(checks.disk_bytes, checks.memory_bytes, checks.script_ms - 1) < 0:
        raise InvalidRequest("the sizes in the checks of a pilot cannot be negative", field="checks")
    return checks
