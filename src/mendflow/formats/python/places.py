"""Where in the user's own code something went wrong."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec

from mendflow.core.model.problems import BadFlow, Problem

PACKAGE: Final = str(Path(__file__).parent)


def bad(message: str, suggestion: str = "") -> BadFlow:
    """A mistake of whoever wrote the flow, with the line of theirs that made it."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame = frame.f_back
    place = Problem(file=frame.f_code.co_filename, line=frame.f_lineno, message=message, suggestion=suggestion)
    return BadFlow(problems=[place])


def of_function(function: Callable[..., Any], error: BadFlow) -> BadFlow:
    """The same mistake, where it is the function as a whole that is wrong."""
    code = function.__code__
    problems = [
        msgspec.structs.replace(each, file=code.co_filename, line=code.co_firstlineno) for each in error.problems
    ]
    return BadFlow(problems=problems)
