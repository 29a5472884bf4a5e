"""Turns an assignment into work that a slot can run: stages its files and code, and builds the message for the slot.

Most jobs need no files and are ready at once. The others are staged in threads, and a callback reports the result."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from mendflow.core.model.faults import Fault
from mendflow.pilot.agent.attempts import HeldAttempt
from mendflow.pilot.agent.background import DetachedTasks
from mendflow.pilot.agent.slot_work import build_work
from mendflow.pilot.files.staging import FileStager, needs_files
from mendflow.pilot.files.staging_faults import StagingFailed
from mendflow.pilot.files.work_folder import WorkFolder

ATTEMPTS_MAX = 8
"""So many attempts are staged in parallel. Staging has its own thread pool, so that slow transfers delay no other work,
such as storing results."""


class AttemptPreparer:
    """`on_prepared` is told of an attempt that had to be staged, with the fault if that failed."""

    def __init__(
        self,
        work_folder: WorkFolder,
        staging: FileStager,
        background: DetachedTasks,
        on_prepared: Callable[[HeldAttempt, Fault | None], None],
    ) -> None:
        self._work_folder = work_folder
        self._staging = staging
        self._background = background
        self._on_prepared = on_prepared
        self._threads = ThreadPoolExecutor(ATTEMPTS_MAX, thread_name_prefix="mendflow-bring")

    def prepare(self, held: HeldAttempt) -> bool:
        """Make the attempt ready for a slot; False if files must be fetched first."""
        spec = held.spec
        assert spec is not None
        function = spec.function
        code = self._staging.local_code(function) if function is not None else ""
        if code is not None and not needs_files(spec):
            self._word(held, code)
            return True
        held.state = "staging"
        self._background.start(self._stage(held))
        return False

    async def _stage(self, held: HeldAttempt) -> None:
        spec = held.spec
        assert spec is not None
        code, fault = "", None
        try:
            bring = asyncio.get_running_loop().run_in_executor(
                self._threads, self._staging.stage_in, spec, self._work_folder.attempt(*held.key)
            )
            held.pins, held.staging_measures, held.links = await bring
            if spec.function is not None:
                known = self._staging.local_code(spec.function)
                code = known if known is not None else await asyncio.to_thread(self._staging.stage_code, spec.function)
            self._word(held, code)
        except StagingFailed as error:
            fault = error.fault
        held.state = "held"
        self._on_prepared(held, fault)

    def _word(self, held: HeldAttempt, code: str) -> None:
        assert held.spec is not None
        folder = self._work_folder.attempt(*held.key)
        held.work = build_work(
            held.job,
            held.fence,
            held.spec,
            folder=folder,
            code=code,
            staging_measures=held.staging_measures,
            number=held.number,
        )

    def with_devices(self, held: HeldAttempt, variable: str) -> None:
        """The same work with the GPUs that it was given."""
        assert held.spec is not None and held.work is not None
        held.work = build_work(
            held.job,
            held.fence,
            held.spec,
            folder=self._work_folder.attempt(*held.key),
            code=held.work.code.partition(":")[2],
            devices=",".join(held.devices),
            variable=variable,
            staging_measures=held.staging_measures,
            number=held.number,
        )
