"""From an assignment to something that a slot can run: files and code are brought, and the work is put in words.

Most jobs need nothing brought and are ready at once. The others are staged in threads, and whoever holds the attempt
then hears whether all is there."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from mendflow.core.model.faults import Fault
from mendflow.pilot.attempts import Held
from mendflow.pilot.background import Background
from mendflow.pilot.home import Home
from mendflow.pilot.stage_faults import StagingFailed
from mendflow.pilot.staging import Staging, needs_files
from mendflow.pilot.works import work_of

ATTEMPTS_MAX = 8
"""So many attempts are staged at a time. They have threads of their own: whatever else is done in threads, results that
are to be kept among it, does not wait for files that come slowly."""


class Bringing:
    """`brought` is told of an attempt that had to be staged, with the fault if that failed."""

    def __init__(
        self, home: Home, staging: Staging, background: Background, brought: Callable[[Held, Fault | None], None]
    ) -> None:
        self._home = home
        self._staging = staging
        self._background = background
        self._brought = brought
        self._threads = ThreadPoolExecutor(ATTEMPTS_MAX, thread_name_prefix="mendflow-bring")

    def prepare(self, held: Held) -> bool:
        """Make the attempt ready for a slot; False if something has to be fetched first."""
        spec = held.spec
        assert spec is not None
        function = spec.function
        code = self._staging.code_at_hand(function) if function is not None else ""
        if code is not None and not needs_files(spec):
            self._word(held, code)
            return True
        held.state = "staging"
        self._background.go(self._stage(held))
        return False

    async def _stage(self, held: Held) -> None:
        spec = held.spec
        assert spec is not None
        code, fault = "", None
        try:
            bring = asyncio.get_running_loop().run_in_executor(
                self._threads, self._staging.bring, spec, self._home.attempt(*held.key)
            )
            held.pins, held.brought = await bring
            if spec.function is not None:
                known = self._staging.code_at_hand(spec.function)
                code = known if known is not None else await asyncio.to_thread(self._staging.bring_code, spec.function)
            self._word(held, code)
        except StagingFailed as error:
            fault = error.fault
        held.state = "held"
        self._brought(held, fault)

    def _word(self, held: Held, code: str) -> None:
        assert held.spec is not None
        folder = self._home.attempt(*held.key)
        held.work = work_of(
            held.job, held.fence, held.spec, folder=folder, code=code, brought=held.brought, number=held.number
        )

    def with_devices(self, held: Held, variable: str) -> None:
        """The same work, told which GPUs it was given."""
        assert held.spec is not None and held.work is not None
        held.work = work_of(
            held.job,
            held.fence,
            held.spec,
            folder=self._home.attempt(*held.key),
            code=held.work.code.partition(":")[2],
            devices=",".join(held.devices),
            variable=variable,
            brought=held.brought,
            number=held.number,
        )
