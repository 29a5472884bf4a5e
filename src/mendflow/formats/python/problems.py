"""Locates errors in the user's code, and decides whether they end the reading.

When a file is read, errors are collected and reading continues; when it is only imported, they are raised at once."""

import sys
import sysconfig
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import Any, Final

import msgspec

from mendflow.core.model.errors import BadFlow, Problem

PACKAGE: Final = str(Path(__file__).parent)
STANDARD_LIBRARY: Final = sysconfig.get_path("stdlib")
problem_list: ContextVar[list[Problem] | None] = ContextVar("problem_list", default=None)
"""The problems of the file, or of its flow, that is being read."""


def bad_flow(message: str, suggestion: str = "") -> BadFlow:
    """An error of the flow's author, with the line that caused it: neither ours nor one of Python's own modules."""
    frame = sys._getframe(1)
    while frame.f_back is not None and _is_elsewhere(frame.f_code.co_filename):
        frame = frame.f_back
    line, column = frame.f_lineno, _column(frame)
    place = Problem(file=frame.f_code.co_filename, line=line, column=column, message=message, suggestion=suggestion)
    return BadFlow(problems=[place])


def _is_elsewhere(file: str) -> bool:
    return file.startswith(PACKAGE) or is_of_python(file)


def is_of_python(file: str) -> bool:
    """Whether a file is of Python's own library."""
    return file.startswith(STANDARD_LIBRARY) and "site-packages" not in file


def _column(frame: FrameType) -> int:
    """The column of the frame, if Python recorded it."""
    line, _, column, _ = next(islice(frame.f_code.co_positions(), frame.f_lasti // 2, None), (None,) * 4)
    return column + 1 if column is not None and line == frame.f_lineno else 0


def collect(problems: Sequence[Problem]) -> None:
    """Collect each problem once; without a list, raise them."""
    known = problem_list.get()
    if known is not None:
        known += [each for each in problems if each not in known]
    elif problems:
        raise BadFlow(problems=problems)


def bad_function(function: Callable[..., Any], error: BadFlow) -> BadFlow:
    """The same error for the function as a whole."""
    code = function.__code__
    problems = [
        msgspec.structs.replace(each, file=code.co_filename, line=code.co_firstlineno, column=1)
        for each in error.problems
    ]
    return BadFlow(problems=problems)
