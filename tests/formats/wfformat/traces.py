"""Traces for tests: our own, those of WfCommons where they lie beside the project, and any that is made up."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mendflow.formats.wfformat import Trace, read_trace

OURS = Path(__file__).with_name("survey.json")
OURS_1_4 = Path(__file__).with_name("survey-1.4.json")
CONFORMANCE = Path(__file__).parents[4] / "shared" / "conformance" / "wfformat"
REAL = [*sorted(CONFORMANCE.glob("*.json")), OURS, OURS_1_4]
ABSENT = f"no traces of WfCommons lie at {CONFORMANCE}; only our own were tried"


def document() -> dict[str, Any]:
    """Our own trace as data, to be changed."""
    found: dict[str, Any] = json.loads(OURS.read_text())
    return found


def made_up(
    tasks: Mapping[str, Sequence[str]],
    *,
    seconds: float = 1.0,
    reads: Mapping[str, Sequence[str]] | None = None,
    makes: Mapping[str, Sequence[str]] | None = None,
) -> Trace:
    """A trace of tasks with what each needs, and what it reads and makes."""
    reads, makes = reads or {}, makes or {}
    files = dict.fromkeys(file for each in (reads, makes) for named in each.values() for file in named)
    specified = [
        {
            "name": task,
            "id": task,
            "parents": list(needs),
            "children": [],
            "inputFiles": list(reads.get(task, ())),
            "outputFiles": list(makes.get(task, ())),
        }
        for task, needs in tasks.items()
    ]
    workflow = {
        "specification": {"tasks": specified, "files": [{"id": file, "sizeInBytes": 1000} for file in files]},
        "execution": {"tasks": [{"id": task, "runtimeInSeconds": seconds} for task in tasks]},
    }
    return read_trace(json.dumps({"name": "made-up", "schemaVersion": "1.5", "workflow": workflow}), "made-up.json")
