"""Opens the fsspec file system of a storage element.

Secrets are in the environment, and the element has only their names: `env:NAME`. The values are remembered here, so
that they are removed from every message."""

import asyncio
import importlib
import inspect
import urllib.parse
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from mendflow.core.data.protocols import CLIENT_PROGRAMS, WITH_RENAME
from mendflow.core.model.data import StorageElement
from mendflow.transfer.addresses import shown
from mendflow.transfer.client_programs import open_program
from mendflow.transfer.errors import BadFileUrl, TransferFailed

ENV: Final = "env:"
OWN: Final = "MENDFLOW_"
"""Prefix of variables whose values go to our own servers and nowhere else."""

SECRET_NAMES: Final = ("key", "secret", "token", "password", "passphrase", "credential", "sas")
CONNECT_S_MAX: Final = 10.0
REFUSED_LOGINS: Final = frozenset({"error_perm", "AuthenticationException", "BadAuthenticationType"})
"""Errors of protocols that connect at once: a wrong password stays wrong."""

EXTRAS: Final = {"s3": "mendflow[s3]", "s3a": "mendflow[s3]"}


def options_of(element: StorageElement, environment: Mapping[str, str]) -> tuple[dict[str, Any], frozenset[str]]:
    """The options for its protocol, and the secret texts among them. A name with dots is a nested map:
    `client_kwargs.region_name`."""
    options: dict[str, Any] = {}
    secrets: set[str] = set()
    for name, value in element.options.items():
        if isinstance(value, str) and value.startswith(ENV):
            variable = value.removeprefix(ENV)
            if variable.startswith(OWN):
                raise BadFileUrl(f"storage element {element.name} wants {variable}, which is not for storage elements")
            if variable not in environment:
                raise BadFileUrl(f"storage element {element.name} wants the variable {variable}, which is not set here")
            value = environment[variable]
            secrets.add(value)
        elif isinstance(value, str) and any(part in name.lower() for part in SECRET_NAMES):
            secrets.add(value)
        inner = options
        *outer, last = name.split(".")
        for part in outer:
            inner = inner.setdefault(part, {})
        inner[last] = value
    return options, frozenset(text for text in secrets if len(text) > 2)


def file_system(protocol: str, options: Mapping[str, Any], timeout_ms: int) -> Any:
    """A file system of a protocol."""
    if protocol in CLIENT_PROGRAMS:
        return open_program(protocol, options, timeout_ms)
    kind = _kind(protocol)
    try:
        made = kind(**_with_times(protocol, options, timeout_ms), skip_instance_cache=True, use_listings_cache=False)
    except (TypeError, ValueError, KeyError, ImportError) as error:
        raise BadFileUrl(f"{protocol}:// does not take these options: {error}") from None
    except Exception as error:  # noqa: BLE001 - some protocols connect here, and each raises what it likes
        refused = type(error).__name__ in REFUSED_LOGINS
        what = "refuses the login" if refused else "cannot be reached"
        raise TransferFailed(f"{protocol}:// {what}: {error}", passing=not refused) from None
    if protocol in ("s3", "s3a"):
        made.retries = 1  # retries are counted in one place
        made.close_session = partial(_close_session, kind.close_session)
    return made


def _close_session(close: Callable[[Any, Any], None], loop: Any, session: Any) -> None:
    """Close what a dropped file system held open. This happens wherever its memory is freed; while an event loop runs
    there, the library would close the session in that one instead of the session's own, which fails."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        close(loop, session)
        return
    if loop is not None and loop.is_running():
        asyncio.run_coroutine_threadsafe(session.__aexit__(None, None, None), loop)


def options_from_url(protocol: str, url: str) -> dict[str, Any]:
    """The host, user and password of a URL, for protocols that need them as options."""
    if protocol not in WITH_RENAME:
        return {}
    parts = urllib.parse.urlsplit(url)
    options = {"host": parts.hostname, "port": parts.port, "hostid": parts.netloc}
    for name, given in (("username", parts.username), ("user", parts.username), ("password", parts.password)):
        options[name] = urllib.parse.unquote(given) if given else None
    if protocol in ("scp", "sftp", "ssh"):  # the latter pass on all their options
        return {name: options[name] for name in ("host", "port", "username", "password") if options[name]}
    known = inspect.signature(_kind(protocol).__init__).parameters
    return {name: value for name, value in options.items() if value and name in known}


def _kind(protocol: str) -> Any:
    """The fsspec class of a protocol. Loaded on first use: most pilots never need it, and it slows the start."""
    library = importlib.import_module("fsspec")
    try:
        return library.get_filesystem_class(protocol)
    except ImportError:
        wanted = EXTRAS.get(protocol, f"what fsspec needs for {protocol}")
        raise BadFileUrl(f"{protocol}:// cannot be spoken here: install {wanted}") from None


def _with_times(protocol: str, options: Mapping[str, Any], timeout_ms: int) -> dict[str, Any]:
    seconds = timeout_ms / 1000
    if protocol in ("s3", "s3a"):
        usual = {
            "connect_timeout": min(seconds, CONNECT_S_MAX),
            "read_timeout": seconds,
            "retries": {"max_attempts": 1},
        }
        return {**options, "config_kwargs": {**usual, **options.get("config_kwargs", {})}}
    if protocol in ("sftp", "ssh", "ftp"):
        return {"timeout": seconds, **options}
    return dict(options)


def redacted(text: str, secrets: frozenset[str]) -> str:
    """The text without secrets, and without passwords in URLs."""
    for secret in secrets:
        text = text.replace(secret, "***")
    return " ".join(shown(word) if "://" in word else word for word in text.split(" "))
