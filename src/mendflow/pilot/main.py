"""Runs a pilot: check the machine, lock the work folder, then pull and run jobs until asked to leave.

Exit codes: 0 left in good order, 2 bad options, 3 cannot work here, 4 refused by the server."""

import asyncio
import logging
import os
import signal
import socket
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from mendflow.core.model.errors import InvalidRequest, RequestError
from mendflow.core.model.sync import LEAVE_REASONS
from mendflow.event_loop import run as run_loop
from mendflow.lazy import LazyModule
from mendflow.log_lines import MessageLines
from mendflow.pilot import standby
from mendflow.pilot.agent.agent import Agent
from mendflow.pilot.agent.http import ExchangeClient, FileClient, ServerAddress
from mendflow.pilot.agent.server_link import SYNC_PATH, PilotRefused, ServerLink
from mendflow.pilot.agent.servers import ServerAddresses
from mendflow.pilot.agent.shutdown import report_unfit
from mendflow.pilot.agent.site_checks import missing_requirements, unreachable, why_unreached
from mendflow.pilot.agent.slot_pool import SlotPool
from mendflow.pilot.cache.maintenance import maintain_cache
from mendflow.pilot.cache.shared import SharedCache
from mendflow.pilot.containers.pilot_containers import PilotContainers
from mendflow.pilot.containers.runtime import ContainerOptions, cache_folder, find_runtime
from mendflow.pilot.environment import BadEnvironment, capacity, check, shortage, usable_cpus
from mendflow.pilot.files.catalogue import ServerFileCatalogue
from mendflow.pilot.files.staging import FileStager
from mendflow.pilot.files.work_folder import WorkFolder
from mendflow.pilot.isolation.allowed_transfers import address_guard, bounds_of, transfer_check
from mendflow.pilot.isolation.hidden_process import hide_memory
from mendflow.pilot.isolation.options import why_impossible
from mendflow.pilot.isolation.variables import EVERYTHING, passed_variables
from mendflow.pilot.options import PilotOptions, cache_flaw, parse
from mendflow.pilot.own_secrets import take_secret
from mendflow.pilot.slot.lease import boot_ms
from mendflow.pilot.slot.memory import machine_bytes
from mendflow.pilot.slot.process_tags import find_slots
from mendflow.pilot.slot.processes import become_reaper
from mendflow.pilot.slot.script_shells import find_bash
from mendflow.pilot.slot.settings import SlotSettings
from mendflow.pilot.slot.spare import SpareSlot

if TYPE_CHECKING:
    from mendflow.pilot.isolation import trial
else:  # most pilots start jobs as themselves
    trial = LazyModule("mendflow.pilot.isolation.trial")

log = logging.getLogger("mendflow.pilot")

LEFT, BAD_OPTIONS, CANNOT_WORK, NOT_WANTED = 0, 2, 3, 4
GOODBYE_MS = 5_000
DISK_LOOK_MS = 1_000


class LocalServerFile(msgspec.Struct, frozen=True):
    """The file in which a server on this machine publishes its address."""

    url: str
    token: str = ""


def run_pilot(options: PilotOptions, spare: SpareSlot | None = None) -> int:
    """Run a pilot to its end; returns the exit code. Needs a process of its own: it installs signal handlers and
    becomes the reaper of orphans. `spare` becomes its first slot."""
    take_secret("MENDFLOW_TOKEN")  # its jobs are below this process
    hide_memory()
    level = logging.WARNING if options.quiet else logging.INFO
    to_terminal = logging.StreamHandler(sys.stderr)
    to_terminal.setFormatter(MessageLines("mendflow pilot: "))
    logging.basicConfig(level=level, handlers=[to_terminal])
    try:
        work_folder = WorkFolder(options.work)
        servers = ServerAddresses(options.server, options.token, work_folder.servers, options.tls)
    except ValueError as error:
        log.error("%s", error)
        return BAD_OPTIONS
    if why := cache_flaw(options.cache):
        log.warning("%s, unless it shares the caches of others", why)
    comes_back = bool(find_slots(str(work_folder.folder))) or work_folder.has_results
    if (unfit := _check_environment(work_folder, options, servers, comes_back)) and not comes_back:
        return _end_unfit(options, servers, unfit)
    try:
        work_folder.make()
        lock = work_folder.lock()
        if options.isolation.confines:
            os.umask(0o077)
            work_folder.open_ways()
    except (RequestError, OSError) as error:
        log.error("%s", error)
        return CANNOT_WORK
    try:
        become_reaper()
        return run_loop(_PilotRun(options, work_folder, servers, unfit, spare).live())
    except InvalidRequest as error:
        log.error("%s", error)
        return BAD_OPTIONS
    finally:
        os.close(lock)


def _check_environment(
    work_folder: WorkFolder, options: PilotOptions, servers: ServerAddresses, comes_back: bool
) -> str:
    """Why jobs cannot run here; empty if they can. A pilot that returns to jobs it left here waits for a better disk,
    and does not run the site's checks first."""
    try:
        check(work_folder.folder)
        if why := _why_not_isolated(work_folder, options):
            raise BadEnvironment(why)
    except BadEnvironment as error:
        if not comes_back:
            return error.message
        log.warning("%s", error)
    memory_bytes = machine_bytes() if options.memory_bytes is None else options.memory_bytes
    lacks = missing_requirements(options.checks, work_folder.folder, memory_bytes=memory_bytes, reach=unreachable)
    if options.storage and not comes_back:
        catalogue = ServerFileCatalogue(FileClient(servers.address), "", site=options.site, storage=options.storage)
        lacks.append(why_unreached(options.storage, catalogue))
    return "; ".join(filter(None, lacks))


def _why_not_isolated(work_folder: WorkFolder, options: PilotOptions) -> str:
    """Why jobs cannot be started here as the options say; empty if they can."""
    if why := why_impossible(options.isolation):
        return why
    if not options.isolation.confines:
        return ""
    work_folder.make()
    work_folder.open_ways()
    variables = passed_variables(options.pass_env).select(os.environ)
    return trial.why_not_confined(options.isolation, str(work_folder.folder), str(work_folder.attempts), variables)


def _end_unfit(options: PilotOptions, servers: ServerAddresses, why: str) -> int:
    log.error("this pilot cannot run here: %s", why)
    identity = {"host": options.host, "site": options.site, "submission": options.name, "secret": options.name_secret}
    run_loop(report_unfit(servers, SYNC_PATH, why=why, **identity))
    return CANNOT_WORK


def _container_rules(options: PilotOptions) -> ContainerOptions:
    """What jobs may ask of containers. Where jobs are kept apart, they mount nothing of the machine that was not named
    for them: a container that has mounted everything keeps nobody apart."""
    rules = options.containers
    return (
        msgspec.structs.replace(rules, mounts="none") if options.isolation.is_set and rules.mounts == "any" else rules
    )


def _incoming_folder(options: PilotOptions) -> Path | None:
    """Where the server in whose data folder this pilot was started takes files as they are. A folder that is kept stays
    in the hands of people, who may write to it: its files are sent."""
    if options.server_file is None or options.keep:
        return None
    incoming = options.server_file.parent / "files" / "incoming"
    return incoming if incoming.is_dir() else None


class _PilotRun:
    """One run of a pilot, from its registration to its deregistration."""

    def __init__(
        self,
        options: PilotOptions,
        work_folder: WorkFolder,
        servers: ServerAddresses,
        unfit: str = "",
        spare: SpareSlot | None = None,
    ) -> None:
        """With `unfit`, the pilot only finishes the attempts that it left here, and then stops."""
        self._options = options
        self._work_folder = work_folder
        self._servers = servers
        self._unfit = unfit
        self._spare = spare
        self._followed = servers.address  # the address in the server file when it was last read
        self._born_at = boot_ms()
        self._next_disk_look = 0
        self._over = asyncio.Event()
        self._hurry = asyncio.Event()
        self._leaves = ""  # the reason

    async def live(self) -> int:
        options, work_folder = self._options, self._work_folder
        identity = work_folder.identify(options.host)
        runtime = find_runtime(options.containers, os.environ)
        cache_of_images = cache_folder(options.containers, os.environ, work_folder.folder)
        own_accounts = bool(options.isolation.jobs_as)
        containers = PilotContainers(runtime, _container_rules(options), cache_of_images, own_accounts=own_accounts)
        work_folder.name_container_notes(containers.notes)
        has = capacity(
            work_folder.folder,
            slots=options.slots or usable_cpus(),
            cpus=options.cpus,
            memory_bytes=options.memory_bytes,
            disk_bytes=options.disk_bytes,
            gpus=options.gpus,
            runtime=runtime.kind if runtime is not None else "",
        )
        address = self._servers.address
        files, exchanges = FileClient(address, _incoming_folder(options)), ExchangeClient(address, SYNC_PATH)
        self._servers.on_move = lambda address: self._switch_server(address, files, exchanges)
        catalogue = ServerFileCatalogue(files, identity.pilot, site=options.site, storage=options.storage)
        cache = SharedCache(
            work_folder.cache,
            options.cache,
            host=options.host or socket.gethostname(),
            first_version=identity.starts << 32,
            memory=work_folder.folder,
        )
        cache.serve(address.url)
        staging = FileStager(
            work_folder,
            files,
            cache=cache.disk,
            catalogue=catalogue,
            gives_links=not options.isolation.confines,
            check_transfer=transfer_check(options.isolation),
            bounds=bounds_of(options.isolation),
            guard=address_guard(options.isolation),
        )
        agent = Agent(
            work_folder,
            identity.pilot,
            has,
            staging,
            settings=SlotSettings(
                keep_all=options.keep,
                keep_failed=options.keep_failed.keeps_any,
                log_bytes_max=options.log_bytes_max,
                variables=passed_variables(options.pass_env),
                isolation=options.isolation,
            ),
            keep_limits=options.keep_failed,
            containers=containers,
            slot_pool=partial(SlotPool, spare=self._spare),
        )
        link = ServerLink(
            agent,
            exchanges,
            pilot=identity.pilot,
            site=options.site,
            host=options.host,
            capacity=has,
            first_serial=identity.starts << 32,
            life_left_ms=self._life_left_ms,
            find_server=None if options.server_file is None else lambda: self._follow(files, exchanges),
            others=self._servers,
            storage=options.storage,
            submission=options.name,
            submission_secret=options.name_secret,
            unfit=self._unfit,
            caches=cache,
        )
        self._install_signal_handlers()
        if self._unfit:
            log.warning("jobs can no longer run here: %s; the pilot delivers its results and stops", self._unfit)
            agent.pause(self._unfit)
        self._look_at_disk(agent)
        await agent.start()
        slots = "1 slot" if has.slots == 1 else f"{has.slots} slots"
        if not find_bash():
            log.warning(
                "there is no bash on this machine: scripts run under `sh -eu`, which does not see a failure inside a"
                " pipe; install bash"
            )
        log.info("%s works for %s with %s in %s", identity.pilot, options.server, slots, work_folder.folder)
        tending = asyncio.get_running_loop().create_task(maintain_cache(cache, agent))
        code = await self._work(agent, link)
        tending.cancel()
        await self._say_goodbye(agent, link, code)
        await agent.sweep_kept_folders()
        link.close()
        cache.close()
        return CANNOT_WORK if code == LEFT and self._unfit else code

    async def _work(self, agent: Agent, link: ServerLink) -> int:
        """Exchange until the pilot should leave, and further while running jobs use their grace period."""
        loop = asyncio.get_running_loop()
        watch = loop.create_task(self._watch(agent, link))
        talk = loop.create_task(link.run_exchanges())
        leave = loop.create_task(self._over.wait())
        await asyncio.wait([talk, leave], return_when=asyncio.FIRST_COMPLETED)
        await agent.finish(0 if talk.done() else self._options.grace_ms, self._hurry)
        for task in (watch, leave, talk):
            task.cancel()
        try:
            await talk
        except PilotRefused as refusal:
            log.error("%s", refusal)
            return NOT_WANTED
        except asyncio.CancelledError:
            return LEFT

    async def _watch(self, agent: Agent, link: ServerLink) -> None:
        """End the pilot when its time limit is reached or it has nothing left to do."""
        options = self._options
        while not self._over.is_set():
            await asyncio.sleep(0.1)
            self._look_at_disk(agent)
            await agent.maintain()
            now = boot_ms()
            idle_ms = 1 if self._unfit else link.idle_exit_ms or options.idle_exit_ms
            idle = idle_ms and not agent.attempts.all and now - agent.idle_since > idle_ms
            alone = options.away_exit_ms and link.away_since and now - link.away_since > options.away_exit_ms
            aged = options.ttl_ms and now - self._born_at > options.ttl_ms
            if idle or alone or aged:
                self._leave("idle" if idle else "away" if alone else "time")
                log.info("leaving: %s", LEAVE_REASONS[self._leaves])
                agent.changed.set()

    def _look_at_disk(self, agent: Agent) -> None:
        """Accept no new job while the disk is too full."""
        now = boot_ms()
        if now < self._next_disk_look or self._unfit:
            return
        self._next_disk_look = now + DISK_LOOK_MS
        short = shortage(self._work_folder.folder)
        if short and not agent.is_paused:
            log.warning("%s; until then no new job is taken", short)
        elif agent.is_paused and not short:
            log.warning("there is enough disk again; jobs are accepted")
        if agent.is_paused != bool(short):
            agent.pause(short)
            agent.changed.set()

    async def _say_goodbye(self, agent: Agent, link: ServerLink, code: int) -> None:
        has_deregistered = code == LEFT and await link.deregister(
            GOODBYE_MS if not link.away_since else 200, self._leaves
        )
        if not has_deregistered:
            agent.store_unjudged_results()
            log.warning(
                "stopped without reaching the server; %d results wait in %s",
                len(agent.attempts.all),
                self._work_folder.results,
            )

    def _follow(self, files: FileClient, exchanges: ExchangeClient) -> bool:
        """Switch to the server's current address; False if the server file has not changed."""
        assert self._options.server_file is not None
        try:
            found = msgspec.json.decode(self._options.server_file.read_bytes(), type=LocalServerFile)
            address = ServerAddress(found.url, found.token, self._options.tls)
        except (OSError, ValueError):
            return False
        if (address.url, address.token) == (self._followed.url, self._followed.token):
            return False
        self._servers.use(address)
        self._followed = address
        self._switch_server(address, files, exchanges)
        return True

    def _switch_server(self, address: ServerAddress, files: FileClient, exchanges: ExchangeClient) -> None:
        log.warning("the server is now at %s", address.url)
        files.move(address)
        exchanges.move(address)

    def _life_left_ms(self) -> int:
        return max(1, self._born_at + self._options.ttl_ms - boot_ms()) if self._options.ttl_ms else 0

    def _install_signal_handlers(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._leave, "told")

    def _leave(self, why: str) -> None:
        """Leave: the first time let jobs end, the second time at once."""
        if self._over.is_set():
            self._hurry.set()
        self._leaves = self._leaves or why
        self._over.set()


def main(arguments: Sequence[str] | None = None) -> int:
    given = sys.argv[1:] if arguments is None else arguments
    if list(given) == [standby.OPTION]:
        return _stand_by()
    return run_pilot(parse(given))


def _stand_by() -> int:
    spare = SpareSlot(passed_variables([EVERYTHING]).select(os.environ))
    try:
        options = standby.wait_for_options()
        return LEFT if options is None else run_pilot(parse(options), spare)
    finally:
        spare.drop()
