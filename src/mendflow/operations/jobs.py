"""Jobs, the pilots that run them, and the servers. A job's id, `CASE/SERIAL`, is also its path."""

from typing import Annotated

from msgspec import Meta

from mendflow.core.model.overview import OverviewView
from mendflow.core.model.parameters import NUMBER_MAX
from mendflow.core.model.principals import METRICS
from mendflow.core.model.repair_views import Explanation
from mendflow.core.model.stats import StatsView
from mendflow.core.model.views import CountsView, Health, JobPage, JobQuery, JobView, LogView, PilotView, ServerView
from mendflow.operations.arguments import Spread
from mendflow.operations.names import CountedBy, JobName
from mendflow.operations.operation import Calls, operation
from mendflow.operations.roles import ADMINISTRATORS, ANYBODY, VIEWERS
from mendflow.operations.subjects import INSTALLATION, JOB, LISTED, WHATEVER

CaseReference = Annotated[str, Meta(min_length=1, description="CASE, CASE/SERIAL, CASE:ITEM or a pilot.")]
AttemptNumber = Annotated[int, Meta(ge=0, le=NUMBER_MAX, description="Of which attempt; 0: of the last one.")]
LogOffset = Annotated[int, Meta(ge=0, le=NUMBER_MAX, description="Leave out so many bytes.")]
Running = Annotated[int, Meta(ge=0, le=1_000, description="Name so many running jobs of each, the longest first.")]


class JobCalls(Calls, tag="jobs"):
    @operation("GET", "/jobs", VIEWERS, LISTED, id="jobs")
    async def find_jobs(self, query: Annotated[JobQuery, Spread()]) -> JobPage:
        """Jobs that match. The newest first, unless another order is given. With a condition the page may be short, and
        `Mendflow-Next` says from where to continue."""

    @operation("GET", "/jobs/count", VIEWERS, LISTED)
    async def count_jobs(
        self,
        query: Annotated[JobQuery, Spread(without=("limit", "offset", "order"))] = JobQuery(),
        *,
        by: CountedBy = "",
    ) -> CountsView:
        """How many jobs match. The number of all jobs, under the empty name, or the numbers by the values of a field.
        If the answer has `next`, ask again from there and add the numbers."""

    @operation("GET", "/jobs/{case}/{serial}", VIEWERS, JOB)
    async def job(self, job: JobName) -> JobView:
        """One job."""

    @operation("GET", "/jobs/{case}/{serial}/log", VIEWERS, JOB)
    async def log(self, job: JobName, *, attempt: AttemptNumber = 0, offset: LogOffset = 0) -> LogView:
        """A part of what an attempt printed. It begins at `offset`, or later where bytes were left out; `next` is the
        offset of the next part. Of an attempt that runs, its pilot is asked."""

    @operation("POST", "/jobs/{case}/{serial}/requeue", ADMINISTRATORS, JOB)
    async def requeue(self, job: JobName, *, reason: str = "") -> JobView:
        """Take a job from its pilot, and let another try it. The job is given to a pilot again when its attempt is
        certain to have ended, which may take as long as a lease. Reports of the attempt are refused from now on. The
        `reason` is for those who look later."""


class PilotCalls(Calls, tag="pilots"):
    @operation("GET", "/pilots", VIEWERS, LISTED)
    async def pilots(self) -> list[PilotView]:
        """Pilots that are known. Of the jobs that they run, those that the caller may see are named."""

    @operation("POST", "/pilots/{pilot}/drain", ADMINISTRATORS, INSTALLATION, repeatable=True)
    async def drain_pilot(self, pilot: str, *, reason: str = "") -> PilotView:
        """Give a pilot no new jobs. Those that it has go on. That holds until it is undone, also for a pilot of the
        same name that comes back. The `reason` is for those who look why jobs wait."""

    @operation("DELETE", "/pilots/{pilot}/drain", ADMINISTRATORS, INSTALLATION, repeatable=True)
    async def resume_pilot(self, pilot: str) -> PilotView:
        """Give a pilot that was drained jobs again."""


class ServerCalls(Calls, tag="server"):
    @operation("GET", "/servers", VIEWERS, INSTALLATION)
    async def servers(self) -> list[ServerView]:
        """Servers on the store. They are shown as this server sees them. `silent`: it has not renewed its document for
        a while; if that lasts, the others take over its cases."""

    @operation("GET", "/overview", VIEWERS, LISTED)
    async def overview(self) -> OverviewView:
        """Everything at a glance. What runs, what waits and why, the failures of the last day by their cause, what was
        mended, pilots, sites and alerts."""

    @operation("GET", "/stats", VIEWERS | METRICS, LISTED)
    async def stats(self, *, running: Running = 0) -> list[StatsView]:
        """The living servers in numbers. The server that answers comes first. A server that does not answer in time is
        left out."""

    @operation("GET", "/why", VIEWERS, WHATEVER)
    async def why(self, subject: CaseReference) -> Explanation:
        """Why something is as it is."""

    @operation("GET", "/health", ANYBODY, INSTALLATION)
    async def health(self) -> Health:
        """Whether the server can work. Status 503 while the store is unreachable; the body says more."""
