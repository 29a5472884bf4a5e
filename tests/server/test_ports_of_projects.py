"""What the ports of SOAP start belongs to the project of whoever asked, and is told to nobody else."""

import aiohttp
import msgspec
import pytest
from lxml import etree

from mendflow.core.model.principals import Principal
from mendflow.core.model.schedules import ScheduleSpec
from mendflow.core.soap.envelope import write_envelope
from mendflow.server.runner import HttpServer
from mendflow.services.messaging.ports.job_messages import JOBS
from mendflow.services.messaging.ports.proxy_messages import PROXY
from tests.server.conftest import Serving
from tests.server.conversation import job_flow
from tests.server.people import As, KnownPeople
from tests.services.messaging.test_proxy_port import call

LEFT = Principal("ann", frozenset({"user"}), {"blue": "author"})
"""Another token of ann's, for another project."""


class TwoTokens(KnownPeople):
    def __init__(self) -> None:
        super().__init__()
        self._people["ann-blue"] = LEFT


@pytest.fixture
async def served(serving: Serving) -> HttpServer:
    return await serving(TwoTokens())


async def say(served: HttpServer, port: str, body: str, who: str) -> dict[str, str]:
    """What the elements of the answer say by their names."""
    async with (
        aiohttp.ClientSession(headers={"Authorization": f"Bearer {who}"}) as line,
        line.post(f"{served.url}/soap/{port}", data=write_envelope([body])) as answer,
    ):
        text = await answer.read()
        assert text.startswith(b"<"), text
        return {etree.QName(each).localname: each.text or "" for each in etree.fromstring(text).iter("{*}*")}


def begin(key: str) -> str:
    return call().replace("<call ", "<begin ").replace("</call>", f"<key>{key}</key></begin>")


def about(operation: str, id: str) -> str:
    return f'<{operation} xmlns="{PROXY}"><callId>{id}</callId></{operation}>'


async def test_se_1_a_call_by_the_proxy_is_of_the_project_of_whoever_asks(people: As, served: HttpServer) -> None:
    of = {who: (await say(served, "proxy", begin("k"), who))["callId"] for who in ("ann", "boris", "clerk", "ann-blue")}
    assert len(set(of.values())) == 4
    projects = {who: (await people("root").case(id)).project for who, id in of.items()}
    assert projects == {"ann": "red", "boris": "blue", "clerk": "default", "ann-blue": "blue"}
    assert (await people("vera").case(of["ann"])).flow == "partner-call"
    for who, id in (("boris", of["ann"]), ("ann", of["ann-blue"]), ("ann-blue", of["ann"])):
        for operation in ("ask", "result"):
            assert "callId" not in await say(served, "proxy", about(operation, id), who)
    assert (await say(served, "proxy", about("ask", of["ann"]), "ann"))["callId"] == of["ann"]
    assert "Fault" in await say(served, "proxy", begin("k"), "olga"), "that is for authors"


async def test_se_1_a_case_is_found_again_by_its_key_in_its_own_project(people: As) -> None:
    await people("ann").deploy(job_flow("night"))
    await people("ann").put_schedule(ScheduleSpec(name="nightly", flow="night", cron="0 3 * * *"))
    await people("boris").deploy(job_flow("other"))
    other = await people("boris").start("other", key="schedule/nightly/now-k")
    started = await people("ann").trigger_schedule("nightly", key="k")
    case = await people("ann").case("last")
    assert (case.flow, case.project) == ("night", "red")
    assert other.id not in msgspec.json.encode(started).decode()


async def _answers(served: HttpServer, who: str, flow: str, case: str) -> list[tuple[int, str]]:
    """Of all that can be asked over SOAP about a flow, and about a case."""
    asked = [
        ("GET", f"flows/{flow}?wsdl", ""),
        ("POST", f"flows/{flow}", "<a/>"),
        ("POST", f"flows/{flow}/link", "<a/>"),
    ]
    inner = f"<jobId>{case}</jobId><callback>http://192.0.2.1:1/</callback>"
    asked += [
        ("POST", "jobs", f'<{each} xmlns="{JOBS}">{inner}</{each}>') for each in ("status", "subscribe", "cancel")
    ]
    asked += [("POST", "proxy", about(each, case)) for each in ("ask", "result")]
    told = []
    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {who}"}) as line:
        for method, path, body in asked:
            data = write_envelope([body]) if body else None
            async with line.request(method, f"{served.url}/soap/{path}", data=data) as answer:
                told.append((answer.status, (await answer.text()).replace(case, "CASE").replace(flow, "FLOW")))
    return told


async def test_se_1_what_is_elsewhere_is_answered_as_what_is_not_there(people: As, served: HttpServer) -> None:
    await people("ann").deploy(job_flow("night"))
    case = (await people("ann").start("night")).id
    call = (await say(served, "proxy", begin("k"), "ann"))["callId"]
    for who in ("boris", "clerk", "ann-blue"):
        for there in (case, call):
            absent = await _answers(served, who, "nothing", "nothing-123456")
            assert await _answers(served, who, "night", there) == absent, who
    assert (await people("ann").case(case)).status == "running"
