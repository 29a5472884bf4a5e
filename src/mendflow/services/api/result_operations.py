"""The part of the domain that is about results which can be used again."""

from collections.abc import Sequence

from msgspec.structs import replace

from mendflow.core.model.errors import InvalidRequest, NotFound
from mendflow.core.model.forecasts import ResultForecast, WantedResult
from mendflow.core.model.ids import Instant
from mendflow.core.model.principals import DEFAULT_PROJECT, EVERYTHING, Sight
from mendflow.core.model.views import CachePolicy, ResultView
from mendflow.core.results.result_key import made_from
from mendflow.core.results.reuse_checks import why_doubted, why_never, why_not_kept, why_undeclared
from mendflow.services.api.view_operations import ViewOperations
from mendflow.services.base.visibility import in_sight
from mendflow.services.cases.result_index import ResultIndex, conditions
from mendflow.stores.contract import FieldCondition

FOREVER: Instant = 2**62


class ResultOperations(ViewOperations):
    async def results(
        self, *, case: str = "", flow: str = "", name: str = "", limit: int = 100, sight: Sight = EVERYTHING
    ) -> list[ResultView]:
        """The newest first; of one case, one flow, or jobs of one name."""
        case = await self._id(case, sight=sight) if case else ""
        where = [*await self._where(case, flow, name), *in_sight(sight)]
        return await (await self._results()).newest(where, limit)

    async def result(self, job: str) -> ResultView:
        """The result of a job, or the one that it took from the cache, with what it was made from."""
        found = await self.newest_submission(job)
        reason = why_never(found.spec) or why_undeclared(found.spec)
        if found.outcome is not None:
            reason = reason or why_doubted(found.spec, found.outcome)
        index = await self._results()
        known = await index.find(found.key, found.spec.project, self._server.clock.now()) if found.key else None
        if known is None:
            never = why_never(found.spec) or (why_not_kept(found.outcome) if found.outcome is not None else "")
            raise NotFound(
                f"the cache has no result of job {found.id}" + (f": {never}" if never else "; `mendflow why` says more")
            )
        return replace(known.view(), reason=reason, made_from=made_from(found.spec))

    async def forecast_results(
        self,
        flow: str,
        jobs: Sequence[WantedResult],
        *,
        cache: CachePolicy = "declared",
        who: str = "",
        project: str = DEFAULT_PROJECT,
    ) -> list[ResultForecast]:
        """What would be found for these jobs of a case that this user is to start."""
        await self._results()
        return await self._server.runtime.results.forecast(flow, jobs, cache, who=who, project=project)

    async def drop_results(
        self, *, case: str = "", flow: str = "", name: str = "", unused_ms: int = 0, every: bool = False
    ) -> int:
        """Forget results: they are not used again, and how many they were is returned. Jobs, cases and files stay.
        `unused_ms`: only those that were neither made nor used for so long. Without any condition `every` is needed."""
        if not (case or flow or name or unused_ms or every):
            raise InvalidRequest("say which results to forget: by case, flow, name or age; or all of them")
        since = self._server.clock.now() - unused_ms if unused_ms else FOREVER
        return await (await self._results()).drop(await self._where(case, flow, name), since)

    async def _results(self) -> ResultIndex:
        await self._settled()
        await self._server.store.refresh()
        return self._server.runtime.results.index

    async def _where(self, case: str, flow: str, name: str) -> list[FieldCondition]:
        return conditions(await self._id(case) if case else "", flow, name)
