"""mendflow: job flows that mend themselves."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mendflow.formats.python.calls import call
    from mendflow.formats.python.flows import flow
    from mendflow.formats.python.jobs import job
    from mendflow.formats.python.retries import Retry
    from mendflow.formats.python.shell_jobs import shell
    from mendflow.formats.python.tables import Table
    from mendflow.formats.python.tasks import task
    from mendflow.reporting import report
    from mendflow.scripts.flow_run import FlowFailed, FlowRun
    from mendflow.scripts.runner import Runner

__all__ = ["FlowFailed", "FlowRun", "Retry", "Runner", "Table", "call", "flow", "job", "report", "shell", "task"]
HOMES = {
    "FlowFailed": "scripts.flow_run",
    "FlowRun": "scripts.flow_run",
    "Runner": "scripts.runner",
    "Retry": "formats.python.retries",
    "Table": "formats.python.tables",
    "call": "formats.python.calls",
    "flow": "formats.python.flows",
    "job": "formats.python.jobs",
    "report": "reporting",
    "shell": "formats.python.shell_jobs",
    "task": "formats.python.tasks",
}


def __getattr__(name: str) -> Any:
    """Flows in Python are loaded when first asked for: a pilot's worker and the command line start without them."""
    if name in HOMES:
        return getattr(importlib.import_module(f"mendflow.{HOMES[name]}"), name)
    if not name.startswith("_"):
        hint = importlib.import_module("mendflow.formats.python.hints").IMPORT_HINTS.get(name)
        if hint:  # an AttributeError would lose its message on the way out of `from mendflow import ...`
            raise ImportError(f"mendflow has no `{name}`: {hint}")
    raise AttributeError(f"module `mendflow` has no attribute `{name}`")
