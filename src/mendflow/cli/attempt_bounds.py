"""The options that bound what a pilot keeps of attempts: for the command that is a pilot, and for those that start
one."""

from typing import Annotated, Final

import typer

from mendflow.cli.option_groups import OptionTable, options_as
from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.units import DURATION_EXAMPLES, SIZE_EXAMPLES, duration_ms, size_bytes
from mendflow.pilot.bounds import AttemptBounds, keep_limits, log_bytes

BOUNDS: Final[OptionTable] = {
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


def bounds_of(keep_failed: str, keep_failed_size: str, keep_failed_max: int, log_size: str) -> AttemptBounds:
    """What these options say."""
    kept = keep_limits(
        ms_of("--keep-failed", keep_failed), bytes_of("--keep-failed-size", keep_failed_size) or 0, keep_failed_max
    )
    return AttemptBounds(log_bytes_max=log_bytes(bytes_of("--log-size", log_size) or 0), keep_failed=kept)


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


with_bounds = options_as("bounds", BOUNDS, bounds_of)
"""The command, with these options in place of its parameter `bounds`."""
