"""Whoever looks on is told why a case does not go on."""

from typing import Any, cast

import pytest

from mendflow.cli.wait_explanations import LONG_S, WaitExplainer
from mendflow.client import Client
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.ids import CaseId, ItemId
from mendflow.core.model.repair import ExceptionType
from mendflow.core.model.repair_views import DecisionQuery, DecisionView, Explanation
from mendflow.core.model.views import CaseView, Health, ItemView, NameCount

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
