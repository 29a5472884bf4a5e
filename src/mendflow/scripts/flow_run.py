"""A run of a flow, as the script that started it has it."""

import asyncio
import time
from collections.abc import Generator
from typing import Any, Final, Generic, NamedTuple, TypeVar

from mendflow.cli.case_ending import all_items
from mendflow.cli.last_log_lines import end_of_output
from mendflow.cli.printing import say
from mendflow.cli.progress import is_held
from mendflow.cli.wait_explanations import WaitExplainer
from mendflow.client import Client
from mendflow.core.model.errors import Conflict
from mendflow.core.model.ids import without_item
from mendflow.core.model.views import CASE_END_STATES, CaseView, ItemView
from mendflow.formats.python.flows import FlowFunction
from mendflow.pages.formatting import one_line, plain_text
from mendflow.scripts.background_loop import BackgroundLoop
from mendflow.scripts.displays import display_for
from mendflow.scripts.local_server import ScriptServer
from mendflow.scripts.results import result_of

R = TypeVar("R")
LOOK_EVERY_S: Final = (0.04, 0.4)
LOG_LINES: Final = 15
FAILURES_SHOWN: Final = 3


class FlowFailed(Exception):
    """A flow did not complete. The text says which job failed, why, and the end of its log; `case` is the case as it
    ended."""

    __module__ = "mendflow"  # as whom people import it

    def __init__(self, text: str, case: CaseView) -> None:
        super().__init__(text)
        self.case = case

    def _render_traceback_(self) -> list[str]:
        """In a notebook: what happened, without the lines of mendflow that told of it."""
        return [f"FlowFailed: {self}"]


class RunOutcome(NamedTuple):
    """The result of a run, or why there is none."""

    value: Any = None
    error: FlowFailed | None = None


class FlowRun(Generic[R]):
    """A flow that was submitted. `id` is its case: `mendflow watch ID` shows it, too."""

    def __init__(
        self,
        flow: FlowFunction[..., R],
        case: CaseView,
        loop: BackgroundLoop,
        server: ScriptServer,
        *,
        gives_map: bool,
        progress: bool,
    ) -> None:
        self.id = str(case.id)
        self._flow = flow
        self._gives_map = gives_map
        self._loop = loop
        self._server = server
        self._progress = progress
        self._ended: CaseView | None = None
        self._outcome: RunOutcome | None = None

    def __repr__(self) -> str:
        return f"<FlowRun {self.id} of {self._flow.name}: {self.status}>"

    @property
    def status(self) -> str:
        """running, suspended, completed, failed or cancelled."""
        return str(self.case.status)

    @property
    def done(self) -> bool:
        """Whether it has ended, in whichever way."""
        return self.status in CASE_END_STATES

    @property
    def case(self) -> CaseView:
        """The case as it is now, with the counts of its jobs."""
        return self._ended or self._loop.call(self._look())

    def wait(self, timeout: float | None = None, *, progress: bool | None = None) -> str:
        """Show the progress until it has ended, or waits for a person; returns its status. Raises TimeoutError after so
        many seconds."""
        ends_at = None if timeout is None else time.monotonic() + timeout
        pause_s, quiet = LOOK_EVERY_S[0], not (self._progress if progress is None else progress)
        shown, waits = display_for(quiet=quiet), self._loop.call(self._explainer(quiet=quiet))
        try:
            while True:
                view = self.case
                shown.show(view)
                if view.status in CASE_END_STATES or is_held(view):
                    return str(view.status)
                self._server.check()
                self._loop.call(waits.look(view))
                if ends_at is not None and time.monotonic() >= ends_at:
                    raise TimeoutError(f"{self.id} is still {view.status} after {timeout:g} s; it goes on")
                time.sleep(pause_s)
                pause_s = min(pause_s * 1.2, LOOK_EVERY_S[1])
        finally:
            shown.close()

    def result(self, timeout: float | None = None) -> R:
        """Wait for it, and return what the flow returns, as values. Raises FlowFailed."""
        outcome = self.outcome(timeout)
        if outcome.error is not None:
            raise outcome.error
        value: R = outcome.value
        return value

    def outcome(self, timeout: float | None = None) -> RunOutcome:
        """Wait for it, and return its result or its failure."""
        if self._outcome is None:
            if self._ended is None:
                self._wait_or_say(timeout)
            self._outcome = self._loop.call(self._end())
        return self._outcome

    def _wait_or_say(self, timeout: float | None) -> None:
        try:
            self.wait(timeout)
        except KeyboardInterrupt:
            again = "run the flow with the same inputs again"
            say(f"{self.id} has not ended; to continue it, {again}, or mendflow resume {self.id}", err=True)
            raise

    def cancel(self) -> None:
        """End it: its jobs are stopped, and those that wait never run."""
        self._loop.call(self._cancel())

    def why(self, item: str = "") -> str:
        """Why it, or one of its items, is as it is: why it waits, or why it failed."""
        return self._loop.call(self._why(item))

    def __await__(self) -> Generator[Any, None, R]:
        """`result = await run`, in a loop that has other work meanwhile."""
        return self._awaited().__await__()

    async def _awaited(self) -> R:
        return await asyncio.to_thread(self.result)

    async def _look(self) -> CaseView:
        async with self._server.client() as client:
            view = await client.case(self.id)
        if view.status in CASE_END_STATES and self._ended is None:
            self._ended = view
            self._server.release()
        return view

    async def _explainer(self, *, quiet: bool) -> WaitExplainer:
        async with self._server.client() as client:  # the run itself keeps the server while it is explained
            return WaitExplainer(client, quiet=quiet, log_is_shown=True)

    async def _cancel(self) -> None:
        try:
            async with self._server.client() as client:
                await client.cancel(self.id)
        except Conflict:
            await self._look()  # it has ended meanwhile

    async def _why(self, item: str) -> str:
        async with self._server.client() as client:
            found = await client.why(f"{self.id}:{item}" if item else self.id)
        return "\n".join([found.sentence, *(f"  {each}" for each in [*found.facts, *found.output])])

    async def _end(self) -> RunOutcome:
        async with self._server.client() as client:
            view = await self._look()
            if view.status == "completed":
                return RunOutcome(await result_of(client, view, self._flow.function, gives_map=self._gives_map))
            return RunOutcome(error=FlowFailed(await failure_text(client, view), view))


async def failure_text(client: Client, case: CaseView) -> str:
    """Which jobs failed, why, and the ends of their logs."""
    state = "is held" if is_held(case) and case.status not in CASE_END_STATES else f"has {case.status}"
    state = state.replace("has cancelled", "was cancelled")
    lines = [f"the flow {case.flow} {state} ({case.id})"]
    failed = [each for each in await all_items(client, case.id) if each.state == "failed"]
    for each in failed[:FAILURES_SHOWN]:
        lines += failed_lines(each)
    if len(failed) > FAILURES_SHOWN:
        lines.append(f"  and {len(failed) - FAILURES_SHOWN:,} more: mendflow items {case.id} --state failed")
    if not failed and case.fault is not None:
        lines.append(f"  {one_line(case.fault.message, 400)}")
    subject = f"{case.id}:{failed[0].item}" if failed else str(case.id)
    return "\n".join([*lines, f"  see also: mendflow why '{subject}'"])


def failed_lines(item: ItemView) -> list[str]:
    message = one_line(without_item(item.fault.message, item.item), 400) if item.fault else "failed"
    log = plain_text((item.fault.log_tail if item.fault else "") or item.log_tail).strip("\n")
    told = f"{item.fault.name}: " if item.fault and item.fault.data and "types" in item.fault.data else ""
    return [f"  job {item.shown}: {told}{message}", *(f"    | {line}" for line in end_of_output(log, LOG_LINES))]
