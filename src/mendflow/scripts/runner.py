"""Runs flows for scripts and notebooks: `flow.run(x=3)`, `flow.submit(x=3)`, or with settings, `Runner(jobs=4)`."""

import functools
import inspect
import os
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, ParamSpec, Self, TypeVar

from mendflow.cli.deployment import with_stored_files
from mendflow.cli.flow_needs import demand_needs, warn_of_needs
from mendflow.cli.options import DATA_FOLDER, DATA_VARIABLE, SERVER_VARIABLE
from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.flow import Flow
from mendflow.core.model.views import CaseView
from mendflow.formats.python.builder import current_builder
from mendflow.formats.python.flows import FlowFunction
from mendflow.scripts.background_loop import BackgroundLoop, at_exit
from mendflow.scripts.flow_run import FlowRun
from mendflow.scripts.inputs import stored_inputs
from mendflow.scripts.local_server import ScriptServer
from mendflow.scripts.notebook_cells import flow_in_file, is_in_cell

P = ParamSpec("P")
R = TypeVar("R")
CLOSES_S = 60.0


class Runner:
    """Where and how flows of a script run. Without a `server` they run on this machine, in the data folder `folder`
    (`.mendflow` here); `jobs` is how many jobs at a time, as many as there are CPUs unless given. `cache`: which
    earlier results are used, as with `mendflow run`. `progress=False` shows nothing. Use it as a context manager, or
    leave it open until the script ends."""

    def __init__(
        self,
        *,
        server: str = "",
        token: str = "",
        folder: str | Path = "",
        jobs: int = 0,
        cache: Literal["declared", "all", "none"] = "declared",
        progress: bool = True,
    ) -> None:
        server = server or ("" if folder else os.environ.get(SERVER_VARIABLE, ""))
        place = Path(folder or os.environ.get(DATA_VARIABLE) or DATA_FOLDER).absolute()
        self._cache = cache
        self._progress = progress
        self._loop = BackgroundLoop()
        self._server = ScriptServer(server, token or os.environ.get("MENDFLOW_TOKEN", ""), place, jobs)
        self._closed = False
        at_exit(self.close)

    def run(self, flow: FlowFunction[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a flow, show its progress, and return its result. Raises FlowFailed."""
        return self.submit(flow, *args, **kwargs).result()

    def submit(self, flow: FlowFunction[P, R], *args: P.args, **kwargs: P.kwargs) -> FlowRun[R]:
        """Start a flow, and return at once."""
        given = demand_runnable(flow, args, kwargs)
        if self._closed:
            raise InvalidRequest("this Runner is closed; make another")
        importable = flow_in_file(flow, self._server.folder) if is_in_cell(flow) else flow
        case = self._loop.call(self._start(importable.build(), given))
        return FlowRun(flow, case, self._loop, self._server, gives_map=importable.gives_map, progress=self._progress)

    def close(self) -> None:
        """Stop the server and the pilot that it started. A case that has not ended is continued when its flow is run
        with the same inputs again, or by `mendflow resume`."""
        if self._closed:
            return
        self._closed = True
        self._loop.call(self._server.close(), CLOSES_S)
        self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def _start(self, flow: Flow, given: dict[str, Any]) -> CaseView:
        client = await self._server.acquire()
        try:
            if self._server.is_here:
                await demand_needs(client, flow, by_option=False)
            else:
                await warn_of_needs(client, flow)
            made = await with_stored_files(client, flow)
            inputs = await stored_inputs(client, flow, given)
            return await client.start_with_flow(made, inputs, cache=self._cache, resume=True)
        except BaseException:
            self._server.release()
            raise


@functools.cache
def default_runner() -> Runner:
    """What `flow.run` and `flow.submit` use."""
    return Runner()


def demand_runnable(flow: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The inputs by name. Raises TypeError, as a call does, or InvalidRequest where a flow cannot be run."""
    if not isinstance(flow, FlowFunction):
        raise InvalidRequest(f"{flow!r:.80} is no flow; a flow is a function with @flow")
    if current_builder.get() is not None:
        raise InvalidRequest(f"inside of another flow call it, {flow.name}(...): that makes it a part of that flow")
    if os.environ.get("MENDFLOW_JOB"):
        raise InvalidRequest(
            f"{flow.name}.run() is reached when a job imports this file, which would start the flow again; put it under"
            ' `if __name__ == "__main__":`'
        )
    return dict(inspect.signature(flow.function).bind(*args, **kwargs).arguments)
