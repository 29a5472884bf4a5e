"""mendflow: job flows that mend themselves."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mendflow.formats.python.decorators import flow, job, shell
    from mendflow.reporting import report

__all__ = ["flow", "job", "report", "shell"]


def __getattr__(name: str) -> Any:
    """Flows in Python are loaded when first asked for: a pilot's worker and the command line start without them."""
    if name == "report":
        return importlib.import_module("mendflow.reporting").report
    if name in __all__:
        return getattr(importlib.import_module("mendflow.formats.python.decorators"), name)
    raise AttributeError(f"module `mendflow` has no attribute `{name}`")
