"""Whoever looks on is told why a case does not go on."""

from typing import Any, cast

import msgspec
import pytest

from mendflow.cli.wait_explanations import LONG_IN_SILENCE_S, LONG_S, WaitExplainer
from mendflow.client import Client
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.ids import CaseId, ItemId
from mendflow.core.model.repair import ExceptionType
from mendflow.core.model.repair_views import DecisionQuery, DecisionView, Explanation
from mendflow.core.model.views import CaseView, Health, ItemView, NameCount, UserTaskView

CASE = CaseView(
    id=CaseId("lines-1"),
    flow="lines",
    digest="",
    status="running",
    started_at=0,
    counts=[NameCount(name="count", kind="job", waiting=1)],
)


class OneRepair:
    """A client of a server on which one repair waits."""

    message = ""

    async def decisions(self, query: DecisionQuery) -> list[DecisionView]:
        assert (query.case, query.state) == ("lines-1", "running")
        fault = Fault(name="missingInput", category=Category.DATA, message="reads/cc.txt cannot be read")
        return [
            DecisionView(
                id="lines-1/2:1:1/abort",
                case=CaseId("lines-1"),
                flow="lines",
                type=ExceptionType.ABORT,
                at=0,
                state="running",
                item=ItemId("count[2]"),
                fault=fault,
            )
        ]

    async def why(self, subject: str) -> Explanation:
        return Explanation(subject=subject, state="running", sentence="case lines-1 is running.")

    async def health(self) -> Health:
        return Health(
            status="ok",
            version="1",
            uptime_ms=0,
            store="memory",
            cases_live=1,
            jobs_waiting=1,
            jobs_running=0,
            pilots=1,
            message=self.message,
        )

    async def items(self, *_given: Any, **_named: Any) -> list[ItemView]:
        return []


async def test_a_repair_that_waits_is_told_of_once_when_the_wait_gets_long(capsys: pytest.CaptureFixture[str]) -> None:
    now = [0.0]
    explainer = WaitExplainer(cast(Client, OneRepair()), quiet=False, clock=lambda: now[0])
    for now[0] in (0.0, 2.0, LONG_S - 1):
        await explainer.look(CASE)
    assert capsys.readouterr().err == ""
    for now[0] in (LONG_S + 2, LONG_S + 10, LONG_S + 20):
        await explainer.look(CASE)
    told = capsys.readouterr().err
    assert told.count("waits:") == 1
    assert "count[2] failed (reads/cc.txt cannot be read) and is tried again later" in " ".join(told.split())
    assert "mendflow why lines-1:count[2]" in " ".join(told.split())


async def test_what_keeps_the_server_from_working_is_told_once_and_that_it_is_over(
    capsys: pytest.CaptureFixture[str],
) -> None:
    now, client = [0.0], OneRepair()
    explainer = WaitExplainer(cast(Client, client), quiet=True, clock=lambda: now[0])
    client.message = "the disk is full"
    for now[0] in (2.0, 4.0, 6.0):
        await explainer.look(CASE)
    assert capsys.readouterr().err.count("waits: the disk is full") == 1
    explainer.store_away("the disk is full")
    client.message, now[0] = "", 20.0
    await explainer.look(CASE)
    assert "goes on" in capsys.readouterr().err


class OneWait(OneRepair):
    """One item waits in a retry level."""

    until = 60_000

    async def why(self, subject: str) -> Explanation:
        sentence = "case lines-1 waits for a file of count[2]: `mendflow cancel lines-1` stops waiting."
        return Explanation(subject=subject, state="waiting", sentence=sentence, until=self.until)


@pytest.mark.parametrize("quiet", [False, True])
async def test_a_wait_in_a_level_is_told_at_once_and_again_in_the_next_level(
    capsys: pytest.CaptureFixture[str], quiet: bool
) -> None:
    now, client = [0.0], OneWait()
    explainer = WaitExplainer(cast(Client, client), quiet=quiet, clock=lambda: now[0], today=lambda: now[0])
    client.until = 4_000
    for now[0] in (0.0, 2.0):
        await explainer.look(CASE)
    assert capsys.readouterr().err == "", "this wait is over soon"
    client.until = 60_000
    for now[0] in (4.0, 8.0, 12.0):
        await explainer.look(CASE)
    told = " ".join(capsys.readouterr().err.split())
    assert told == "case lines-1 waits for a file of count[2]: `mendflow cancel lines-1` stops waiting."
    client.until = 660_000
    for now[0] in (20.0, 26.0):
        await explainer.look(CASE)
    assert capsys.readouterr().err.count("stops waiting") == 1


class OneJob(OneRepair):
    """One job waits for a reason, and nothing is mended."""

    async def decisions(self, query: DecisionQuery) -> list[DecisionView]:
        return []

    async def items(self, *_given: Any, **_named: Any) -> list[ItemView]:
        return [
            ItemView(
                case=CASE.id, item=ItemId("count"), name="count", kind="job", serial=1, state="waiting", created_at=1
            )
        ]

    async def why(self, subject: str) -> Explanation:
        sentence = "it waits for the next attempt; its last attempt failed: the container did not start"
        return Explanation(subject=subject, state="waiting", sentence=sentence)

    async def worklist(self, *_given: Any, **_named: Any) -> list[UserTaskView]:
        return [
            UserTaskView(
                id="lines-1/3",
                case=CASE.id,
                item=ItemId("approve"),
                role="lead",
                title="Is it good?",
                description="",
                data=None,
                state="offered",
                offered_at=1,
                fields={},
            )
        ]


async def test_who_wants_quiet_is_told_of_a_job_that_is_tried_again_in_vain_although_it_begins_each_time(  # UI-1
    capsys: pytest.CaptureFixture[str],
) -> None:
    now = [0.0]
    explainer = WaitExplainer(cast(Client, OneJob()), quiet=True, clock=lambda: now[0])
    running = msgspec.structs.replace(CASE, counts=[NameCount(name="count", kind="job", running=1)])
    while now[0] < LONG_IN_SILENCE_S:
        assert capsys.readouterr().err == ""
        for case, seconds in ((CASE, 4.0), (running, 0.1)):
            await explainer.look(case)
            now[0] += seconds
    for _ in range(8):
        await explainer.look(CASE)
        now[0] += 2.0
    told = " ".join(capsys.readouterr().err.split())
    assert told == "waits: it waits for the next attempt; its last attempt failed: the container did not start"


async def test_a_job_that_runs_long_is_no_wait(capsys: pytest.CaptureFixture[str]) -> None:  # UI-1
    now = [0.0]
    explainer = WaitExplainer(cast(Client, OneJob()), quiet=True, clock=lambda: now[0])
    running = msgspec.structs.replace(CASE, counts=[NameCount(name="count", kind="job", running=1)])
    for now[0] in (0.0, 100.0, 200.0):
        await explainer.look(running)
    for now[0] in (201.0, 203.0):
        await explainer.look(CASE)
    assert capsys.readouterr().err == ""


async def test_who_wants_quiet_is_told_of_a_person_who_is_waited_for_once_it_takes_long(  # UI-1
    capsys: pytest.CaptureFixture[str],
) -> None:
    now = [0.0]
    explainer = WaitExplainer(cast(Client, OneJob()), quiet=True, clock=lambda: now[0])
    asked = msgspec.structs.replace(CASE, counts=[NameCount(name="approve", kind="user-task", waiting=1)])
    for now[0] in (0.0, 2.0, LONG_IN_SILENCE_S - 1):
        await explainer.look(asked)
    assert capsys.readouterr().err == ""
    for now[0] in (LONG_IN_SILENCE_S + 2, LONG_IN_SILENCE_S + 9):
        await explainer.look(asked)
    assert capsys.readouterr().err.count("waits for a person (lead): Is it good?") == 1
