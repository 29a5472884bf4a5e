"""Reports values from a running Python job: a line of JSON in the file that its pilot reads.

Without a pilot it does nothing. It never raises: no job should fail because of its reports."""

import os
from typing import Any

import msgspec


def report(**values: object) -> None:
    """Report the latest values: `mendflow.report(step=3, loss=0.25)`. Rules about running jobs see them within about a
    second; values under other names stay. OutsideRead of a job this does nothing."""
    path = os.environ.get("MENDFLOW_REPORT")
    if not path or not values:
        return
    try:
        line = msgspec.json.encode(values, enc_hook=_plain) + b"\n"
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(file, line)
        finally:
            os.close(file)
    except (OSError, TypeError, ValueError, OverflowError, RecursionError):
        pass


def _plain(value: Any) -> object:
    """Numbers of other libraries as numbers, everything else as text."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return str(value)
