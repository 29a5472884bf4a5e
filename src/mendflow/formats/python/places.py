"""Where in the user's own code something went wrong."""

import sys
from pathlib import Path
from typing import Final

from mendflow.core.model.problems import BadFlow, Problem

PACKAGE: Final = str(Path(__file__).parent)


def bad(message: str, suggestion: str = "") -> BadFlow:
    """A mistake of whoever wrote the flow, with the line of theirs that made it."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame = frame.f_back
    place = Problem(file=frame.f_code.co_filename, line=frame.f_lineno, message=message, suggestion=suggestion)
    return BadFlow(problems=[place])
