"""A pilot without processes of its own: it does each job at once, in a folder, as the flow says.

Commands run under bash, functions in the tests' process. A failed job is tried again as its author said. Files stay
where they were made; `KEPT` says where that is."""

import hashlib
import importlib
import itertools
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mendflow.core.data.path_arguments import PLACED
from mendflow.core.data.path_patterns import name_below
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.ids import CaseId, JobId, PilotId
from mendflow.core.model.jobs import Job, JobSpec, Outcome
from mendflow.core.model.values import FileRef
from mendflow.core.scheduling import job_events
from mendflow.core.scheduling import jobs as lifecycle
from mendflow.pilot.slot.declared_outputs import find_outputs
from mendflow.pilot.slot.outputs import parse_outputs
from mendflow.pilot.worker.process import _paths

KEPT: dict[str, Path] = {}
"""The files that were made or given, by their digests."""


class FolderPilot:
    """`flow_folder` is where files beside the flow are, and functions."""

    def __init__(self, flow_folder: Path, work: Path) -> None:
        self._flow_folder = flow_folder
        self._work = work
        self._numbers = itertools.count()

    def __call__(self, spec: JobSpec) -> Outcome:
        job = lifecycle.create(JobId("c/1"), CaseId("c"), spec, now=0)
        while True:
            now = job.available_at
            for event in lifecycle.grant(job, PilotId("p"), now=now):
                job_events.evolve(job, event)
            outcome = self._attempt(spec, job)
            verdict = lifecycle.report(job, PilotId("p"), job.fence, outcome, now=now, policy=lifecycle.RetryPolicy())
            for event in verdict.events:
                job_events.evolve(job, event)
            if job.finished:
                return outcome

    def _attempt(self, spec: JobSpec, job: Job) -> Outcome:
        folder = self._work / f"attempt-{next(self._numbers)}"
        folder.mkdir(parents=True)
        for path, ref in spec.inputs.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(KEPT.get(ref.sha256, self._flow_folder / ref.sha256).read_bytes())
        for name in spec.file_lists:
            (folder / spec.files[name]).parent.mkdir(parents=True, exist_ok=True)
            if spec.files[name].endswith("/"):
                (folder / spec.files[name]).mkdir(parents=True, exist_ok=True)
        outcome = self._command(spec, folder, job.tries) if spec.function is None else self._call(spec, folder)
        return self._with_files(spec, folder, outcome) if outcome.ok else outcome

    def _command(self, spec: JobSpec, folder: Path, attempt: int) -> Outcome:
        outputs = folder / ".outputs"
        outputs.touch()
        env = {**os.environ, **spec.env, "MENDFLOW_OUTPUT": str(outputs), "MENDFLOW_ATTEMPT": str(attempt)}
        words = ["bash", "-euo", "pipefail", "-c", spec.command or ""]
        done = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True)
        if done.returncode:
            fault = Fault(name="exitCode", category=Category.JOB, message=done.stderr, exit_code=done.returncode)
            return Outcome(fault=fault)
        return Outcome(outputs=parse_outputs(outputs.read_text()), log_tail=done.stdout)

    def _call(self, spec: JobSpec, folder: Path) -> Outcome:
        assert spec.function is not None
        with pytest.MonkeyPatch.context() as patch:
            patch.syspath_prepend(self._flow_folder)
            if spec.function.folder:  # another flow's file may have had the same name
                patch.delitem(sys.modules, spec.function.module, raising=False)
            function = getattr(importlib.import_module(spec.function.module), spec.function.name)
            patch.chdir(folder)
            try:
                return Outcome(outputs=function(*map(_real, spec.args), **spec.kwargs))
            except Exception as error:  # whatever a function raises is its outcome
                return Outcome(fault=Fault(name=type(error).__name__, category=Category.JOB, message=str(error)))

    def _with_files(self, spec: JobSpec, folder: Path, outcome: Outcome) -> Outcome:
        found = find_outputs(spec.files, str(folder), spec.file_lists, spec.inputs)
        if found.fault is not None:
            return Outcome(fault=found.fault)
        return Outcome(
            outputs=outcome.outputs,
            log_tail=outcome.log_tail,
            files={name: stored(folder / path, Path(path).name) for name, path in found.files.items()},
            file_lists={
                name: [stored(folder / path, name_below(path, each.base)) for path in each.paths]
                for name, each in found.lists.items()
            },
        )


def stored(path: Path, name: str) -> FileRef:
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    KEPT[digest] = path
    return FileRef(sha256=digest, bytes=path.stat().st_size, name=name)


def _real(argument: Any) -> Any:
    return _paths(argument) if isinstance(argument, dict) and PLACED in argument else argument
