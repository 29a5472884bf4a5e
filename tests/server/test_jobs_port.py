"""The port of jobs over HTTP, on a server of several: any of them takes a job, and answers for each."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from lxml import etree

from mendflow.core.model.faults import Category, Fault
from mendflow.core.soap.envelope import write_envelope
from mendflow.server.access import read_tokens, token_hash
from mendflow.services.messaging.ports.job_messages import JOBS
from mendflow.services.messaging.ports.messages import PortFault
from tests.patience import PATIENCE_S
from tests.server.conversation import do_jobs, task_flow
from tests.server.town import Citizen, town

JOB = """<JobDefinition xmlns="http://schemas.ggf.org/jsdl/2005/11/jsdl"><JobDescription><Application>
<POSIXApplication xmlns="http://schemas.ggf.org/jsdl/2005/11/jsdl-posix"><Executable>/bin/true</Executable>
</POSIXApplication></Application></JobDescription></JobDefinition>"""
CALLBACK = "<callback>http://127.0.0.1:1/</callback>"
PEOPLE = read_tokens(
    f"boss admin {token_hash('t-boss')}\nanne engine {token_hash('t-anne')}\nbert engine {token_hash('t-bert')}\n"
    f"carl user {token_hash('t-carl')}"
)
BOMB = '<!DOCTYPE a [<!ENTITY b "bbbb"><!ENTITY c "&b;&b;&b;&b;">]>'


@pytest.fixture
async def two(tmp_path: Path) -> AsyncIterator[tuple[Citizen, Citizen]]:
    async with town(tmp_path, "east", "west") as (east, west):
        yield east, west


async def say(citizen: Citizen, body: str, token: str = "") -> tuple[int, dict[str, str]]:
    """The status of the answer, and what its elements say by their names."""
    shown = {"Authorization": f"Bearer {token}"} if token else {}
    async with (
        aiohttp.ClientSession(headers=shown) as line,
        line.post(f"{citizen.url}/soap/jobs", data=write_envelope([body])) as answer,
    ):
        text = await answer.read()
        found = etree.fromstring(text).iter("{*}*") if text else ()
        return answer.status, {etree.QName(each).localname: each.text or "" for each in found}


def about(operation: str, job: str, inner: str = "") -> str:
    return f'<{operation} xmlns="{JOBS}"><jobId>{job}</jobId>{inner}</{operation}>'


async def test_any_server_answers_for_any_job(two: tuple[Citizen, Citizen]) -> None:  # FM-5
    east, west = two
    status, told = await say(east, f'<submit xmlns="{JOBS}">{JOB}</submit>')
    assert status == 200
    job = told["jobId"]
    assert (await say(west, about("status", job)))[1]["state"] == "running"
    assert (await say(west, about("subscribe", job, "<callback>http://127.0.0.1:1/</callback>")))[0] == 200
    assert (await say(west, about("cancel", job)))[1]["state"] == "cancelled"
    assert (await say(east, about("status", job)))[1]["state"] == "cancelled"


async def test_an_engine_can_do_at_the_port_with_jobs_of_others_what_it_can_do_by_the_api_which_is_nothing(
    tmp_path: Path,
) -> None:
    async with town(tmp_path, "east", "west", tokens=PEOPLE) as (east, west):
        async with east.client("t-boss") as boss:
            await boss.deploy(task_flow())
            case = (await boss.start("ask", key="secret")).id
        job = (await say(east, f'<submit xmlns="{JOBS}"><key>k</key>{JOB}</submit>', "t-anne"))[1]["jobId"]
        for subject, token in ((case, "t-anne"), (job, "t-bert")):
            for operation in ("status", "subscribe", "cancel"):
                told = (await say(west, about(operation, subject, CALLBACK), token))[1]
                assert "unknownJob" in told and not {"state", "key"} & told.keys()
        assert (await say(west, about("status", job), "t-anne"))[1]["key"] == "k"
        for subject in (case, job):
            told = (await say(west, about("status", subject), "t-carl"))[1]
            assert told["state"] == "running" and "key" not in told
            assert (await say(west, about("cancel", subject), "t-carl"))[1]["state"] == "cancelled"


async def test_a_job_that_somebody_waits_for_is_answered_when_it_is_over(two: tuple[Citizen, Citizen]) -> None:
    east, _ = two
    waiting = asyncio.create_task(say(east, f'<run xmlns="{JOBS}">{JOB}</run>'))
    async with east.client() as client:
        async with asyncio.timeout(PATIENCE_S):
            while not await client.cases():
                await asyncio.sleep(0.02)
        await do_jobs(client, 1)
    status, told = await waiting
    assert (status, told["state"]) == (200, "completed")


async def test_what_attacks_is_refused_and_leaves_no_trace(two: tuple[Citizen, Citizen]) -> None:
    east, _ = two
    deep = "<a>" * 300 + "</a>" * 300
    for body in (BOMB + "<a>&c;</a>", deep, f'<submit xmlns="{JOBS}"><x {"y" * 70_000}="1"/></submit>'):
        async with (
            aiohttp.ClientSession() as line,
            line.post(f"{east.url}/soap/jobs", data=body.encode()) as answer,
        ):
            assert answer.status == 500
        assert (await say(east, body.removeprefix(BOMB)))[0] == 500
    async with east.client() as client:
        assert await client.cases() == []


async def test_what_the_proxy_could_not_mend_keeps_its_name_over_a_line(
    two: tuple[Citizen, Citizen], monkeypatch: pytest.MonkeyPatch
) -> None:  # FM-9
    east, _ = two
    proxy = east.server.runtime.ports["proxy"]
    faults = {
        "partnerUnreachable": ["<partnerUnreachable", "nobody is there"],
        "{urn:shop}soldOut": ['<soldOut xmlns="urn:shop"/>'],
        "{http://schemas.xmlsoap.org/soap/envelope/}Client": ["<faultcode>soap:Client<"],
    }
    for name, words in faults.items():
        fault = Fault(name=name, category=Category.NETWORK, message="nobody is there", data={"port_type": "x"})

        async def asked(_text: str, *, fault: Fault = fault, **_: str) -> str:
            raise PortFault(fault.name, fault.message, partner=fault)

        monkeypatch.setattr(proxy, "handle_request", asked)
        async with (
            aiohttp.ClientSession() as line,
            line.post(f"{east.url}/soap/proxy", data=write_envelope(["<call/>"])) as answer,
        ):
            told = await answer.text()
        assert answer.status == 500 and all(each in told for each in words), told


async def test_the_wsdl_names_the_address_by_which_it_was_asked(two: tuple[Citizen, Citizen]) -> None:
    east, _ = two
    for port in ("jobs", "proxy"):
        async with aiohttp.ClientSession() as line, line.get(f"{east.url}/soap/{port}?wsdl") as answer:
            text = await answer.text()
        assert f'location="{east.url}/soap/{port}"' in text and "definitions>" in text
