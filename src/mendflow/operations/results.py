"""Results that can be used again for jobs made from the same."""

from mendflow.core.model.parameters import Count, Limit
from mendflow.core.model.views import ResultView
from mendflow.operations.names import JobName
from mendflow.operations.operation import Calls, operation
from mendflow.operations.roles import ADMINISTRATORS, READERS


class ResultCalls(Calls, tag="results"):
    @operation("GET", "/results", READERS)
    async def results(self, *, case: str = "", flow: str = "", name: str = "", limit: Limit = 100) -> list[ResultView]:
        """Results that can be used again. The newest first; of one case, of one flow's cases, or of jobs of one
        name."""

    @operation("GET", "/results/{case}/{serial}", READERS)
    async def result(self, job: JobName) -> ResultView:
        """The result of a job, and what it was made from. Of a job that took its result from the cache it is that
        one."""

    @operation("DELETE", "/results", ADMINISTRATORS)
    async def drop_results(
        self, *, case: str = "", flow: str = "", name: str = "", unused_ms: Count = 0, every: bool = False
    ) -> int:
        """Forget results, so that they are not used again. Cases and files stay. `unused_ms`: only those that were
        neither made nor used for so long. Without any condition `every` is needed. The answer is how many they
        were."""
