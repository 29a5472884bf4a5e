"""Where in the user's own code something went wrong, and whether that ends the reading of it.

Whoever reads a file wants to hear of everything in it, so there a mistake is put on a list and the reading goes on;
whoever only imports the file hears at once."""

import sys
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import Any, Final

import msgspec

from mendflow.core.model.errors import BadFlow, Problem

PACKAGE: Final = str(Path(__file__).parent)
problem_list: ContextVar[list[Problem] | None] = ContextVar("problem_list", default=None)
"""The problems of the file, or of the flow in it, that is being read."""


def bad_flow(message: str, suggestion: str = "") -> BadFlow:
    """A mistake of whoever wrote the flow, with the line of theirs that made it."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame = frame.f_back
    line, column = frame.f_lineno, _column(frame)
    place = Problem(file=frame.f_code.co_filename, line=line, column=column, message=message, suggestion=suggestion)
    return BadFlow(problems=[place])


def _column(frame: FrameType) -> int:
    """Where in its line the frame is, if Python was not told to leave that out."""
    line, _, column, _ = next(islice(frame.f_code.co_positions(), frame.f_lasti // 2, None), (None,) * 4)
    return column + 1 if column is not None and line == frame.f_lineno else 0


def collect(problems: Sequence[Problem]) -> None:
    """Put them on the list, each once; if there is none, they are raised."""
    known = problem_list.get()
    if known is not None:
        known += [each for each in problems if each not in known]
    elif problems:
        raise BadFlow(problems=problems)


def bad_function(function: Callable[..., Any], error: BadFlow) -> BadFlow:
    """The same mistake, where it is the function as a whole that is wrong."""
    code = function.__code__
    problems = [
        msgspec.structs.replace(each, file=code.co_filename, line=code.co_firstlineno, column=1)
        for each in error.problems
    ]
    return BadFlow(problems=problems)
