"""mendflow: job flows that mend themselves."""

import ctypes
import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mendflow.formats.python.decorators import flow, job, shell
    from mendflow.reporting import report

__all__ = ["flow", "job", "report", "shell"]

if sys.version_info < (3, 12):
    # The library that evaluates conditions gives each null away as a None that it does not own, and so takes a
    # reference to None every time: a process that evaluates for long would be ended by Python when none is left. From
    # 3.12 on None is not counted. Here it gets more references than anybody can take.
    ctypes.c_ssize_t.from_address(id(None)).value += 1 << 48


def __getattr__(name: str) -> Any:
    """Flows in Python are loaded when first asked for: a pilot's worker and the command line start without them."""
    if name == "report":
        return importlib.import_module("mendflow.reporting").report
    if name in __all__:
        return getattr(importlib.import_module("mendflow.formats.python.decorators"), name)
    raise AttributeError(f"module `mendflow` has no attribute `{name}`")
