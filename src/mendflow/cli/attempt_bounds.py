"""The options that bound what a pilot keeps of attempts: for the command that is a pilot, and for those that start
one."""

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer

from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.units import DURATION_EXAMPLES, SIZE_EXAMPLES, duration_ms, size_bytes
from mendflow.pilot.bounds import AttemptBounds, keep_limits, log_bytes

_OPTIONS: dict[str, tuple[Any, Any]] = {
    "keep_failed": (
        Annotated[
            str,
            typer.Option(
                "--keep-failed",
                metavar="TIME",
                envvar="MENDFLOW_KEEP_FAILED",
                help="How long to keep the working folders of failed attempts.",
            ),
        ],
        "24h",
    ),
    "keep_failed_size": (
        Annotated[
            str,
            typer.Option(
                "--keep-failed-size",
                metavar="SIZE",
                envvar="MENDFLOW_KEEP_FAILED_SIZE",
                help="How much disk these folders may take together.",
            ),
        ],
        "10GiB",
    ),
    "keep_failed_max": (
        Annotated[
            int,
            typer.Option(
                "--keep-failed-max",
                min=0,
                metavar="N",
                envvar="MENDFLOW_KEEP_FAILED_MAX",
                help="How many of these folders to keep; 0: none.",
            ),
        ],
        100,
    ),
    "log_size": (
        Annotated[
            str,
            typer.Option(
                "--log-size",
                metavar="SIZE",
                envvar="MENDFLOW_LOG_SIZE",
                help="How much to keep of what an attempt prints; of more, the beginning and the end are kept.",
            ),
        ],
        "100MB",
    ),
}


def with_bounds(command: Callable[..., None]) -> Callable[..., None]:
    """The command, with these options in place of its parameter `bounds`."""

    @functools.wraps(command)
    def run_with_bounds(
        *, keep_failed: str, keep_failed_size: str, keep_failed_max: int, log_size: str, **words: Any
    ) -> None:
        kept = keep_limits(
            ms_of("--keep-failed", keep_failed), bytes_of("--keep-failed-size", keep_failed_size) or 0, keep_failed_max
        )
        bounds = AttemptBounds(log_bytes_max=log_bytes(bytes_of("--log-size", log_size) or 0), keep_failed=kept)
        command(bounds=bounds, **words)

    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        parameters += _parameters() if parameter.name == "bounds" else [parameter]
    keyword = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]
    run_with_bounds.__signature__ = inspect.Signature(keyword)  # type: ignore[attr-defined]  # what inspect looks for
    run_with_bounds.__annotations__ = {parameter.name: parameter.annotation for parameter in keyword}
    return run_with_bounds


def _parameters() -> list[inspect.Parameter]:
    return [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, (annotation, default) in _OPTIONS.items()
    ]


def bytes_of(word: str, text: str) -> int | None:
    """The size that an option gives; None if it is not given."""
    size = size_bytes(text) if text else None
    if text and size is None:
        raise InvalidRequest(f"{word} {text!r} is not a size; write one like {SIZE_EXAMPLES}")
    return size


def ms_of(word: str, text: str) -> int:
    """The time that an option gives; 0 if it is not given."""
    time_ms = duration_ms(text) if text else 0
    if time_ms is None:
        raise InvalidRequest(f"{word} {text!r} is not a time; write one like {DURATION_EXAMPLES}")
    return time_ms
