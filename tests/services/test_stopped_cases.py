"""A server that was opened for one case does not continue what it finds unfinished until it is asked to."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from mendflow.core.model.flow import JobActivity, Sequence
from mendflow.core.model.jobs import JobSpec, Outcome
from mendflow.services.api.domain import Domain
from mendflow.services.runtime.server import Server
from mendflow.stores.memory import MemoryStore
from tests.services.conftest import HandPilot, server_on
from tests.services.test_domain import named, start

TWO_JOBS = named(Sequence(name="s", body=tuple(JobActivity(name=each, command=each) for each in "ab")))


class Reopened:
    """A case whose job `a` a pilot held when its server ended, at the next server."""

    def __init__(self, server: Server, case: str, pilot: HandPilot) -> None:
        self.server = server
        self.domain = Domain(server)
        self.case = case
        self.pilot = pilot
        pilot.domain = self.domain


@pytest.fixture
async def reopened(tmp_path: Path) -> AsyncIterator[Reopened]:
    store = MemoryStore()
    first = server_on(store, tmp_path)
    await first.open()
    case = await start(Domain(first), TWO_JOBS)
    pilot = HandPilot(Domain(first))
    await pilot.sync(want=1)
    await first.close()
    second = server_on(store, tmp_path, continues_found=False)
    await second.open()
    yield Reopened(second, case, pilot)
    await second.close()


async def test_a_result_of_a_stopped_case_counts_and_what_follows_waits_until_it_is_resumed(reopened: Reopened) -> None:
    domain, case, pilot = reopened.domain, reopened.case, reopened.pilot
    answer = await pilot.sync(want=4, a=Outcome())
    assert len(answer.accepted) == 1
    await pilot.sync(want=4)
    assert not pilot.held
    assert (await domain.case(case)).stopped
    assert f"`mendflow resume {case}`" in (await domain.why(f"{case}:b")).sentence
    view = await domain.resume(case, who="me")
    assert (view.status, view.stopped) == ("running", False)
    await pilot.run_all(lambda spec: Outcome())
    ended = await domain.case(case)
    assert (ended.status, sum(count.done for count in ended.counts)) == ("completed", 2)


async def test_a_job_of_a_stopped_case_can_be_suspended_and_resumed_and_waits_once(reopened: Reopened) -> None:
    domain, case, pilot = reopened.domain, reopened.case, reopened.pilot
    await pilot.sync(a=Outcome())
    await domain.suspend(case, "b", who="me")
    await domain.resume(case, "b", who="me")
    await pilot.run_all(lambda spec: Outcome())
    assert (await domain.case(case)).status == "completed"


async def test_a_case_that_the_server_itself_began_goes_on_when_the_store_is_back(
    reopened: Reopened, restart: Callable[[Server], Awaitable[None]]
) -> None:
    domain, pilot = reopened.domain, HandPilot(reopened.domain, "p-2")
    own = (await domain.start("f", {}, who="me")).id
    await restart(reopened.server)
    await pilot.run_all(lambda spec: Outcome())
    assert (await domain.case(own)).status == "completed"
    assert (await domain.case(reopened.case)).stopped


async def test_starting_the_like_of_a_stopped_case_continues_it_if_wished_so(reopened: Reopened) -> None:
    domain, case = reopened.domain, reopened.case
    assert (await domain.start("f", {}, who="me", cache="none", notify="", resume=True)).id == case
    assert (await domain.start("f", {}, who="me", resume=True)).id != case, "it is not stopped any more"


async def test_a_cancelled_case_gives_no_job_when_another_is_resumed(reopened: Reopened) -> None:
    domain, pilot = reopened.domain, HandPilot(reopened.domain, "p-2")
    await reopened.pilot.sync(a=Outcome())
    await domain.cancel(reopened.case, who="me")
    await domain.start("f", {}, who="me")
    commands: list[str] = []

    def play(spec: JobSpec) -> Outcome:
        commands.append(str(spec.command))
        return Outcome()

    await pilot.run_all(play)
    assert commands == ["a", "b"]


async def test_resume_last_resumes_the_case_that_was_the_last_one_when_it_was_asked(
    server: Server, domain: Domain, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = await start(domain, TWO_JOBS)
    await domain.suspend(case, who="me")
    others = list[str]()

    async def another_begins(*_: object, **__: object) -> list[str]:
        others.append(await start(domain, TWO_JOBS))
        await domain.suspend(others[-1], who="me")
        return []

    monkeypatch.setattr(server.runtime.administration, "retry_case", another_begins)
    assert (await domain.resume("last", who="me")).id == case
    assert [(await domain.case(each)).status for each in (case, *others)] == ["running", "suspended"]
