"""Why jobs of a case wait, for whoever looks on: at once where no pilot could ever take one, else after a while."""

import time
from collections.abc import Callable
from typing import Final

from mendflow.cli.printing import say
from mendflow.cli.task_reminders import TaskReminder
from mendflow.client import Client
from mendflow.core.model.errors import NotFound
from mendflow.core.model.repair_views import DecisionQuery
from mendflow.core.model.views import CaseView
from mendflow.pages.formatting import one_line

LOOK_EVERY_S: Final = 1.0
LOOK_SELDOM_S: Final = 5.0
LONG_S: Final = 10.0
LONG_IN_SILENCE_S: Final = 30.0
"""Without progress to look at, a wait is told of only when it gets long. It is added up since something ended last: a
job that is tried again and again begins each time, and yet nothing goes on."""

ITEMS_LOOKED_AT: Final = 50
REASONS_TOLD_MAX: Final = 20
SHORT_WAIT_S: Final = 5.0
"""A wait that is over so soon is not told of."""

SENTENCE_CHARS_MAX: Final = 1_000


class WaitExplainer:
    """Tells each reason once. `log_is_shown`: the server's own log tells of its disk and its store."""

    def __init__(
        self,
        client: Client,
        *,
        quiet: bool,
        log_is_shown: bool = False,
        clock: Callable[[], float] = time.monotonic,
        today: Callable[[], float] = time.time,
    ) -> None:
        self._client = client
        self._log_is_shown = log_is_shown
        self._server_told = ""
        self._clock = clock
        self._today = today
        self._tasks = TaskReminder(client)
        self._quiet = quiet
        self._long_s = LONG_IN_SILENCE_S if quiet else LONG_S
        self._looks_at = clock() + LOOK_EVERY_S
        self._ended = ""
        self._waited_s = 0.0
        self._seen_at = clock()
        self._was_idle = False
        self._told: set[str] = set()

    async def look(self, case: CaseView) -> None:
        """To be called again and again while the case is followed."""
        now, is_idle = self._clock(), not any(count.running for count in case.counts)
        self._add_up(case, now, is_idle=is_idle)
        if now < self._looks_at or len(self._told) >= REASONS_TOLD_MAX:
            return
        self._looks_at = now + (LOOK_SELDOM_S if self._told else LOOK_EVERY_S)
        if not self._log_is_shown:
            self._tell_server((await self._client.health()).message)
        is_long = self._waited_s >= self._long_s and is_idle
        if is_idle:
            await self._tell_repairs(case, is_long=is_long)
        has_task = any(count.waiting for count in case.counts if count.kind == "user-task")
        if has_task and (is_long or not self._quiet):
            await self._tasks.look(case.id)
        if not any(count.waiting for count in case.counts if count.kind == "job"):
            return
        names: set[str] = set()
        for item in await self._client.items(case.id, state="waiting", limit=ITEMS_LOOKED_AT):
            if item.kind == "job" and item.name not in names | self._told:
                names.add(item.name)
                await self._explain(f"{case.id}:{item.item}", item.name, is_long=is_long)

    def _add_up(self, case: CaseView, now: float, *, is_idle: bool) -> None:
        """How long nothing has run since something ended last."""
        ended = str([(each.name, each.done, each.failed, each.cancelled, each.cached) for each in case.counts])
        if ended != self._ended:
            self._ended, self._waited_s = ended, 0.0
        elif self._was_idle:
            self._waited_s += now - self._seen_at
        self._seen_at, self._was_idle = now, is_idle

    def store_away(self, reason: str) -> None:
        """The server answers that its store is away."""
        if not self._log_is_shown:
            self._tell_server(reason)

    def _tell_server(self, problem: str) -> None:
        """What keeps the server, or its pilots, from working; told again when it is back after it was over."""
        if problem and not self._server_told:
            say(f"waits: {one_line(problem, SENTENCE_CHARS_MAX)}", err=True)
        elif self._server_told and not problem:
            say("goes on: there is room again, or the store is back", err=True)
        self._server_told = problem

    async def _tell_repairs(self, case: CaseView, *, is_long: bool) -> None:
        """A repair may wait before it tries again. A wait in a retry level is told at once, also to who wants quiet: it
        takes a minute to an hour. Of another repair it is told what it repairs, if it takes long."""
        running = DecisionQuery(case=case.id, state="running", limit=ITEMS_LOOKED_AT)
        decisions = await self._client.decisions(running)
        told = await self._client.why(case.id) if decisions else None
        if told is not None and told.until:
            if str(told.until) not in self._told and told.until / 1000 - self._today() > SHORT_WAIT_S:
                self._told.add(str(told.until))
                say(one_line(told.sentence, SENTENCE_CHARS_MAX), err=True)
            return
        for decision in decisions if is_long else ():
            fault = decision.fault
            if fault is None or len(self._told) >= REASONS_TOLD_MAX or f"{decision.item} {fault.message}" in self._told:
                continue
            self._told.add(f"{decision.item} {fault.message}")
            say(
                f"waits: {decision.shown} failed ({one_line(fault.message, 400)}) and is tried again later;"
                f" see mendflow why {case.id}:{decision.item}, or end the case with mendflow cancel {case.id}",
                err=True,
            )

    async def _explain(self, subject: str, name: str, *, is_long: bool) -> None:
        try:
            reason = await self._client.why(subject)
        except NotFound:
            return  # it has gone on
        if reason.state != "waiting" or not (reason.stuck or is_long):
            return
        self._told.add(name)
        say(f"waits: {one_line(reason.sentence, 300)}", err=True)
        if reason.stuck and not reason.needs_limit:
            say("  it can run only when a pilot joins that has as much (mendflow pilot), or asks for less", err=True)
