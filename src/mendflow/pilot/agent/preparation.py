"""Turns an assignment into work that a slot can run: stages its files and code, and builds the message for the slot.

Most jobs need no files and are ready at once. The others are staged in threads, and a callback reports the result."""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import msgspec

from mendflow.core.model.faults import Fault
from mendflow.core.model.software import Software
from mendflow.lazy import LazyModule
from mendflow.pilot.agent.attempts import HeldAttempt
from mendflow.pilot.agent.background import DetachedTasks
from mendflow.pilot.agent.slot_work import build_work, secrets_of
from mendflow.pilot.containers.pilot_containers import PilotContainers
from mendflow.pilot.containers.start import ContainerRefused
from mendflow.pilot.files.secret_files import write_secret_files
from mendflow.pilot.files.staging import FileStager, needs_files
from mendflow.pilot.files.staging_faults import StagingFailed, unprepared_fault
from mendflow.pilot.files.work_folder import WorkFolder
from mendflow.pilot.slot.faults import start_fault
from mendflow.pilot.slot.settings import SlotSettings

if TYPE_CHECKING:
    from mendflow.pilot.software import preparation as software
    from mendflow.pilot.software.preparation import LoadedSoftware, SoftwareLoader
else:
    software = LazyModule("mendflow.pilot.software.preparation")

log = logging.getLogger("mendflow.pilot")

ENVIRONMENTS_MAX = 4
"""So many software environments are made in parallel."""

ATTEMPTS_MAX = 8
"""So many attempts are staged in parallel. Staging has its own thread pool, so that slow transfers delay no other work,
such as storing results."""


class AttemptPreparer:
    """`on_prepared` is told of an attempt that had to be staged, with the fault if that failed."""

    def __init__(
        self,
        work_folder: WorkFolder,
        staging: FileStager,
        containers: PilotContainers,
        background: DetachedTasks,
        on_prepared: Callable[[HeldAttempt, Fault | None], None],
        settings: SlotSettings,
    ) -> None:
        self._work_folder = work_folder
        self._staging = staging
        self._containers = containers
        self._background = background
        self._on_prepared = on_prepared
        self._settings = settings
        self._threads = ThreadPoolExecutor(ATTEMPTS_MAX, thread_name_prefix="mendflow-bring")
        self._loader: SoftwareLoader | None = None
        self._software_threads = ThreadPoolExecutor(ENVIRONMENTS_MAX, thread_name_prefix="mendflow-software")
        self._loading: dict[bytes, asyncio.Future[LoadedSoftware]] = {}

    def prepare(self, held: HeldAttempt) -> bool:
        """Make the attempt ready for a slot; False if files or its image must be fetched first."""
        spec = held.spec
        assert spec is not None
        function = spec.function
        code = self._staging.local_code(function) if function is not None else ""
        is_here = spec.software is None and self._has_image(held)
        if code is not None and is_here and not needs_files(spec):
            self._word(held, code)
            return True
        held.state = "staging"
        self._background.start(self._stage(held))
        return False

    def _has_image(self, held: HeldAttempt) -> bool:
        """Whether it needs no image, or its image was just seen here; what cannot be had is told by staging."""
        assert held.spec is not None
        if held.spec.container is None or held.container is not None:
            return True
        try:
            held.container = self._containers.images.known(held.spec.container)
        except ContainerRefused:
            return False
        return held.container is not None

    async def _stage(self, held: HeldAttempt) -> None:
        spec = held.spec
        assert spec is not None
        code, fault = "", None
        try:
            if spec.software is not None:
                held.software = software.ready_for(spec, await self._load(spec.software))
            if spec.container is not None and held.container is None:
                held.container = await self._containers.images.find(spec.container)
            bring = asyncio.get_running_loop().run_in_executor(
                self._threads, self._staging.stage_in, spec, self._work_folder.attempt(*held.key)
            )
            held.pins, held.staging_measures, held.links = await bring
            if files := secrets_of(spec, held.secrets).files:
                isolation = self._settings.isolation
                await asyncio.to_thread(
                    write_secret_files,
                    self._work_folder.attempt(*held.key),
                    files,
                    shared=isolation.sandbox != "containers",
                    passable=bool(isolation.jobs_as),
                )
            if spec.function is not None:
                known = self._staging.local_code(spec.function)
                code = known if known is not None else await asyncio.to_thread(self._staging.stage_code, spec.function)
            self._word(held, code)
        except (StagingFailed, ContainerRefused) as error:
            fault = error.fault
        except OSError as error:
            fault = start_fault(error, self._work_folder.attempt(*held.key))
        except Exception as error:  # an attempt must not wait for ever because of a fault of ours
            log.exception("attempt %s %d could not be made ready", *held.key)
            fault = unprepared_fault(error)
        held.state = "held"
        self._on_prepared(held, fault)

    async def _load(self, wanted: Software) -> "LoadedSoftware":
        """What a job names, loaded once however many wait for it."""
        if self._loader is None:
            self._loader = software.SoftwareLoader(
                self._staging.place_stored,
                self._staging.is_fetching,
                variables=self._settings.variables,
                isolation=self._settings.isolation,
            )
        key = msgspec.msgpack.encode(wanted)
        if (loading := self._loading.get(key)) is None:
            loop = asyncio.get_running_loop()
            loading = self._loading[key] = loop.run_in_executor(self._software_threads, self._loader.load, wanted)
            loading.add_done_callback(lambda _: self._loading.pop(key, None))
        return await asyncio.shield(loading)

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
            software=held.software,
            container=held.container,
            secrets=held.secrets,
            values=held.pins,
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
            software=held.software,
            container=held.container,
            secrets=held.secrets,
            values=held.pins,
        )
