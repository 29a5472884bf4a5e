"""Results that can be used again for jobs made from the same."""

from typing import Annotated

from msgspec import Meta

from mendflow.core.model.forecasts import ResultForecast, WantedResult
from mendflow.core.model.parameters import Count, Limit
from mendflow.core.model.views import CachePolicy, ResultView
from mendflow.operations.names import JobName, ProjectName
from mendflow.operations.operation import Calls, operation
from mendflow.operations.roles import ADMINISTRATORS, OPERATORS, VIEWERS
from mendflow.operations.subjects import FORECAST_FLOW, INSTALLATION, JOB, LISTED

WantedResults = Annotated[list[WantedResult], Meta(max_length=1000, description="At most 1,000 at a time.")]


class ResultCalls(Calls, tag="results"):
    @operation("GET", "/results", VIEWERS, LISTED)
    async def results(self, *, case: str = "", flow: str = "", name: str = "", limit: Limit = 100) -> list[ResultView]:
        """Results that can be used again. The newest first; of one case, of one flow's cases, or of jobs of one
        name."""

    @operation("GET", "/results/{case}/{serial}", VIEWERS, JOB)
    async def result(self, job: JobName) -> ResultView:
        """The result of a job, and what it was made from. Of a job that took its result from the cache it is that
        one."""

    @operation("POST", "/results/forecast", OPERATORS, FORECAST_FLOW, repeatable=True, audited=False)
    async def forecast_results(
        self, flow: str, jobs: WantedResults, *, cache: CachePolicy = "declared", project: ProjectName = ""
    ) -> list[ResultForecast]:
        """What would be found for jobs of a case of this flow that is to be started; nothing changes. The flow need not
        be deployed. `cache` says which results are looked for, as when a case is started."""

    @operation("DELETE", "/results", ADMINISTRATORS, INSTALLATION)
    async def drop_results(
        self, *, case: str = "", flow: str = "", name: str = "", unused_ms: Count = 0, every: bool = False
    ) -> int:
        """Forget results, so that they are not used again. Cases and files stay. `unused_ms`: only those that were
        neither made nor used for so long. Without any condition `every` is needed. The answer is how many they
        were."""
