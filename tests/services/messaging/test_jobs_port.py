"""The port of jobs, asked as over a line and by cases, on a store in memory."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path

import pytest

from mendflow.core.engine.messages import CallPartner
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.flow import Receive
from mendflow.core.model.ids import CaseId, ItemId
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.principals import DEFAULT_PROJECT, EVERYTHING, Sight
from mendflow.core.model.values import FileRef
from mendflow.core.soap import ADDRESSING
from mendflow.core.soap.envelope import element_of, read_envelope
from mendflow.core.xml.reader import read
from mendflow.core.xml.tree import Element
from mendflow.services.api.domain import Domain
from mendflow.services.base.poster import NoPoster
from mendflow.services.messaging.contracts import OWN_ONLY, CaseAccess
from mendflow.services.messaging.ports.job_messages import JOBS
from mendflow.services.messaging.ports.messages import PortFault, child, text_in
from mendflow.services.runtime.server import Server
from mendflow.stores.memory import MemoryStore
from mendflow.wiring import read_job
from tests.patience import PATIENCE_S
from tests.services.conftest import HandPilot, server_on
from tests.services.messaging.test_message_router import QUESTIONS
from tests.services.test_domain import named, start

JSDL = """<JobDefinition xmlns="http://schemas.ggf.org/jsdl/2005/11/jsdl"><JobDescription>
<JobIdentification><JobName>count</JobName></JobIdentification>
<Application><POSIXApplication xmlns="http://schemas.ggf.org/jsdl/2005/11/jsdl-posix">
<Executable>/bin/true</Executable><Output>out.txt</Output></POSIXApplication></Application>{more}
</JobDescription></JobDefinition>"""


LISTENER = "<callback>http://listener/</callback>"
DONE = Outcome(files={"output": FileRef(sha256="ab" * 32, bytes=3, name="out.txt")}, exit_code=0)


class Receiver(NoPoster):
    """Takes what is posted, or refuses it for a while."""

    private = True

    def __init__(self) -> None:
        self.refusals = 0
        self.taken: list[Element] = []
        self.ids: set[str] = set()
        self.headers: dict[str, str | None] = {}

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> str:
        assert headers["SOAPAction"] == f'"{JOBS}/notify"'
        self.ids.add(read_envelope(body).message_id)
        if self.refusals:
            self.refusals -= 1
            return "the line is dead"
        [node] = read_envelope(body).body
        self.headers = {str(each.tag): each.text for each in read_envelope(body).headers}
        self.taken.append(read(element_of(node)))
        return ""

    def heard(self) -> list[tuple[str, str, str]]:
        return [(each.local, text_in(each, "jobId"), text_in(each, "state")) for each in self.taken]


@pytest.fixture
def receiver() -> Receiver:
    return Receiver()


@pytest.fixture
async def server(tmp_path: Path, receiver: Receiver) -> AsyncIterator[Server]:
    server = server_on(MemoryStore(), tmp_path)
    server.read_job, server.poster = read_job, receiver
    await server.open()
    yield server
    await server.close()


def asking(operation: str, inner: str = "", more: str = "") -> str:
    return f'<{operation} xmlns="{JOBS}">{inner}{JSDL.format(more=more)}</{operation}>'


def about(operation: str, job: str, inner: str = "") -> str:
    return f'<{operation} xmlns="{JOBS}"><jobId>{job}</jobId>{inner}</{operation}>'


async def ask(server: Server, text: str, message_id: str = "") -> Element:
    answer = await server.runtime.ports["jobs"].handle_request(text, who="me", message_id=message_id, reach=OWN_ONLY)
    assert answer is not None
    return read(answer)


async def until(true: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not true():
            await asyncio.sleep(0.01)


async def test_a_submitted_job_is_asked_for_by_the_id_that_it_got(
    server: Server, domain: Domain, pilot: HandPilot
) -> None:  # FM-5
    job = text_in(await ask(server, asking("submit")), "jobId")
    assert text_in(await ask(server, about("status", job)), "state") == "running"
    await pilot.run_all(lambda spec: DONE)
    told = await ask(server, about("status", job))
    assert (told.local, text_in(told, "state"), text_in(told, "exitCode")) == ("statusResponse", "completed", "0")
    output = child(told, "output")
    assert output is not None and (output.get("name"), output.get("sha256"), output.string()) == (
        "output",
        "ab" * 32,
        "out.txt",
    )
    assert (await domain.case(job)).flow == "count"


async def test_a_sweep_is_submitted_as_one_job_whose_outputs_are_those_of_all(
    server: Server, pilot: HandPilot
) -> None:  # FM-2
    sweep = (
        '<s:Sweep xmlns:s="http://schemas.ogf.org/jsdl/2009/03/sweep"'
        ' xmlns:p="http://schemas.ggf.org/jsdl/2005/11/jsdl-posix"><s:Assignment><s:DocumentNode>'
        "<s:Match>//p:Output</s:Match></s:DocumentNode>"
        '<LoopInteger xmlns="http://schemas.ogf.org/jsdl/2009/03/sweep/functions" start="1" end="3"/>'
        "</s:Assignment></s:Sweep></JobDefinition>"
    )
    wanted = asking("submit").replace("</JobDefinition>", sweep)
    job = text_in(await ask(server, wanted), "jobId")
    await pilot.run_all(lambda spec: DONE)
    told = await ask(server, about("status", job))
    outputs = [each.get("name") for each in told.elements() if each.local == "output"]
    assert (text_in(told, "state"), outputs) == ("completed", ["output"] * 3)


async def test_run_answers_when_the_job_is_over_and_a_failed_one_is_a_fault(server: Server, pilot: HandPilot) -> None:
    waiting = asyncio.create_task(ask(server, asking("run")))
    await until(lambda: server.runtime.meta.jobs_waiting())
    await pilot.run_all(lambda spec: DONE)
    told = await waiting
    assert (told.local, text_in(told, "state")) == ("runResponse", "completed")
    fault = Fault(name="exit", category=Category.JOB, message="it ended with \x01 3", exit_code=3)
    waiting = asyncio.create_task(ask(server, asking("run")))
    await until(lambda: server.runtime.meta.jobs_waiting())
    await pilot.run_all(lambda spec: Outcome(fault=fault, exit_code=3))
    with pytest.raises(PortFault) as failed:
        await waiting
    assert failed.value.name == f"{{{JOBS}}}jobFailed"
    told = read(failed.value.element)
    why = child(told, "fault")
    assert why is not None and text_in(told, "state") == "failed" and text_in(told, "exitCode") == "3"
    assert (text_in(why, "name"), text_in(why, "category")) == ("exit", "job")


async def test_the_same_key_is_the_same_job_and_another_description_under_it_is_refused(server: Server) -> None:
    first = text_in(await ask(server, asking("submit", "<key>k</key>")), "jobId")
    assert text_in(await ask(server, asking("submit", "<key>k</key>")), "jobId") == first
    assert text_in(await ask(server, asking("submit")), "jobId") != first
    by_line = text_in(await ask(server, asking("submit"), message_id="m"), "jobId")
    assert text_in(await ask(server, asking("submit"), message_id="m"), "jobId") == by_line
    other = "<Resources><TotalCPUCount><Exact>2</Exact></TotalCPUCount></Resources>"
    with pytest.raises(PortFault, match="take another") as refused:
        await ask(server, asking("submit", "<key>k</key>", other))
    assert refused.value.name == f"{{{JOBS}}}refused"
    with pytest.raises(PortFault, match="take another"):
        await ask(server, asking("submit", "<key>k</key>").replace(">count<", ">another<"))


async def test_a_forgotten_job_is_taken_and_nothing_is_answered(
    server: Server, domain: Domain, pilot: HandPilot
) -> None:  # FM-5
    assert (
        await server.runtime.ports["jobs"].handle_request(asking("submitAndForget"), who="me", reach=OWN_ONLY) is None
    )
    [case] = await domain.cases()
    assert case.status == "running", "it is the asker who forgets it"
    fault = Fault(name="exit", category=Category.JOB, message="it broke", exit_code=1)
    await pilot.run_all(lambda spec: Outcome(fault=fault))
    assert (await domain.case(case.id)).status == "failed"
    async with asyncio.timeout(PATIENCE_S):
        while not any("it broke" in each.message for each in await domain.notices()):
            await asyncio.sleep(0.01)


async def test_a_cancelled_job_ends_and_one_that_is_over_stays_as_it_ended(server: Server, pilot: HandPilot) -> None:
    job = text_in(await ask(server, asking("submit")), "jobId")
    assert text_in(await ask(server, about("cancel", job)), "state") == "cancelled"
    job = text_in(await ask(server, asking("submit")), "jobId")
    await pilot.run_all(lambda spec: DONE)
    assert text_in(await ask(server, about("cancel", job)), "state") == "completed"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (f'<dance xmlns="{JOBS}"/>', "nothing that can be asked"),
        ("<submit/>", "nothing that can be asked"),
        (f'<submit xmlns="{JOBS}"/>', "holds one <JobDefinition>"),
        (f'<status xmlns="{JOBS}"/>', "no <jobId>"),
        ('<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', "document type"),
        (asking("submit", f"<key>{'k' * 201}</key>"), "at most 200"),
        (asking("submit", "<callback>ftp://there</callback>"), "not an address"),
        (asking("submit", "<callback/>"), "empty"),
        (
            asking(
                "submit",
                more="<DataStaging><FileName>a</FileName><CreationFlag>overwrite</CreationFlag>"
                "<Source><URI>/etc/passwd</URI></Source></DataStaging>",
            ),
            "came alone",
        ),
    ],
)
async def test_what_cannot_be_done_is_refused_with_the_reason(server: Server, text: str, why: str) -> None:
    with pytest.raises(PortFault, match=why) as refused:
        await ask(server, text)
    assert refused.value.name == f"{{{JOBS}}}refused"
    assert read(refused.value.element).local == "refused"
    assert server.runtime.manager.live == {}


async def test_an_unknown_job_is_told_so(server: Server) -> None:
    for text in (about("status", "x-1"), about("cancel", "x-1"), about("subscribe", "x-1", "<callback>x</callback>")):
        with pytest.raises(PortFault, match="no job 'x-1'") as unknown:
            await ask(server, text)
        assert unknown.value.name == f"{{{JOBS}}}unknownJob"


async def unknown(server: Server, text: str, who: str, reach: CaseAccess = OWN_ONLY) -> str:
    """What somebody is told who may not know of a job."""
    with pytest.raises(PortFault) as fault:
        await server.runtime.ports["jobs"].handle_request(text, who=who, reach=reach)
    assert fault.value.name == f"{{{JOBS}}}unknownJob"
    return fault.value.text


async def test_a_job_is_unknown_to_everybody_but_whoever_asked_for_it(
    server: Server, domain: Domain, receiver: Receiver
) -> None:
    job = text_in(await ask(server, asking("submit", "<key>k</key>")), "jobId")
    for operation in ("status", "cancel", "subscribe"):
        said = [await unknown(server, about(operation, each, LISTENER), "you") for each in (job, "not-there")]
        assert said[0].replace(job, "not-there") == said[1], "it is told as one that is not there"
    assert (await domain.case(job)).status == "running" and receiver.taken == []
    assert text_in(await ask(server, about("status", job)), "key") == "k"


async def test_a_case_that_nobody_asked_for_at_the_port_is_no_job_of_it(server: Server, domain: Domain) -> None:
    case = await waits(domain, server)
    for operation in ("status", "cancel", "subscribe"):
        await unknown(server, about(operation, case, LISTENER), "me")
    assert (await domain.case(case)).status == "running"


async def test_whom_the_api_lets_do_the_same_with_any_case_the_port_lets_too_and_tells_no_key(
    server: Server, pilot: HandPilot, receiver: Receiver
) -> None:
    async def asked(operation: str, reach: CaseAccess) -> Element:
        text = about(operation, job, LISTENER)
        return read(await server.runtime.ports["jobs"].handle_request(text, who="boss", reach=reach) or "")

    job = text_in(await ask(server, asking("submit", "<key>k</key>")), "jobId")
    await unknown(server, about("cancel", job), "boss", CaseAccess(can_view=EVERYTHING))
    await unknown(server, about("status", job), "boss", CaseAccess(can_end=EVERYTHING))
    told = await asked("status", CaseAccess(can_view=EVERYTHING))
    assert text_in(told, "state") == "running" and child(told, "key") is None
    await asked("subscribe", CaseAccess(can_view=EVERYTHING))
    told = await asked("cancel", CaseAccess(can_end=EVERYTHING))
    assert text_in(told, "state") == "cancelled" and child(told, "key") is None
    await until(lambda: receiver.taken)
    assert child(receiver.taken[0], "key") is None


async def test_a_case_asks_about_jobs_of_its_owner_and_of_nobody_else(server: Server, domain: Domain) -> None:
    mine = text_in(await ask(server, asking("submit")), "jobId")
    theirs = text_in(
        read(await server.runtime.ports["jobs"].handle_request(asking("submit"), who="you", reach=OWN_ONLY) or ""),
        "jobId",
    )
    live = server.runtime.manager.live[await waits(domain, server)]
    assert await server.runtime.ports["jobs"].handle_call(about("status", mine), live, order(1))
    with pytest.raises(PortFault, match="no job"):
        await server.runtime.ports["jobs"].handle_call(about("cancel", theirs), live, order(2))
    assert (await domain.case(theirs)).status == "running"


async def test_a_callback_is_brought_until_it_is_taken(
    server: Server, pilot: HandPilot, receiver: Receiver
) -> None:  # FM-5 FM-8
    receiver.refusals = 1
    wanted = "<callback><r xmlns='urn:x'><Address>http://listener/x</Address></r></callback>"
    job = text_in(await ask(server, asking("submit", wanted)), "jobId")
    await pilot.run_all(lambda spec: DONE)
    await until(lambda: receiver.taken)
    assert receiver.heard() == [("notify", job, "completed")]
    assert len(receiver.ids) == 1, "whoever hears it twice knows that it is the same"
    await until(lambda: server.runtime.ledger.idle)
    assert [each async for each in server.store.scan("callback")] == []


async def test_a_callback_that_was_not_taken_before_a_crash_is_brought_after_it(
    server: Server, pilot: HandPilot, receiver: Receiver, restart: Callable[[Server], Awaitable[None]]
) -> None:  # FM-8
    receiver.refusals = 1_000
    job = text_in(await ask(server, asking("submit")), "jobId")
    await ask(server, about("subscribe", job, "<callback>http://listener/</callback>"))
    await restart(server)
    await pilot.run_all(lambda spec: DONE)
    await until(lambda: receiver.refusals < 1_000)
    await restart(server)
    assert receiver.taken == []
    receiver.refusals = 0
    await until(lambda: receiver.taken)
    assert receiver.heard() == [("notify", job, "completed")]


async def test_whoever_subscribes_to_a_job_that_is_over_is_told_at_once(
    server: Server, pilot: HandPilot, receiver: Receiver
) -> None:
    job = text_in(await ask(server, asking("submit")), "jobId")
    await pilot.run_all(lambda spec: DONE)
    await ask(server, about("subscribe", job, "<callback>http://listener/</callback>"))
    await until(lambda: receiver.taken)


async def test_what_the_reference_of_a_callback_wants_along_is_sent_as_headers(
    server: Server, pilot: HandPilot, receiver: Receiver
) -> None:
    job = text_in(await ask(server, asking("submit")), "jobId")
    await pilot.run_all(lambda spec: DONE)
    callback = (
        f'<callback><w:EndpointReference xmlns:w="{ADDRESSING}"><w:Address>http://listener/</w:Address>'
        '<w:ReferenceParameters><ticket xmlns="urn:t">7</ticket></w:ReferenceParameters></w:EndpointReference>'
        "</callback>"
    )
    await ask(server, about("subscribe", job, callback))
    await until(lambda: receiver.taken)
    assert receiver.headers["{urn:t}ticket"] == "7"


async def waits(domain: Domain, server: Server) -> CaseId:
    case = CaseId(await start(domain, named(Receive(name="r", channel="c"))))
    await until(lambda: case in server.runtime.manager.live)
    return case


def order(serial: int) -> CallPartner:
    return CallPartner(serial=serial, item=ItemId("call"), partner="queue", operation="run", wants_answer=True)


async def test_a_job_of_a_case_is_named_after_its_order_and_found_again_after_a_crash(
    server: Server, domain: Domain, pilot: HandPilot, restart: Callable[[Server], Awaitable[None]]
) -> None:  # FM-3 FM-5
    case = await waits(domain, server)

    async def called(serial: int, text: str) -> Element:
        answer = await server.runtime.ports["jobs"].handle_call(text, server.runtime.manager.live[case], order(serial))
        assert answer is not None
        return read(answer)

    running = asyncio.create_task(called(7, asking("run")))
    await until(lambda: CaseId(f"{case}.7") in server.runtime.manager.live)
    await restart(server)
    with pytest.raises(Exception, match="ask again"):
        await running
    running = asyncio.create_task(called(7, asking("run")))
    await until(lambda: server.runtime.meta.jobs_waiting())
    await pilot.run_all(lambda spec: DONE)
    assert text_in(await running, "jobId") == f"{case}.7"
    assert text_in(await called(7, asking("run")), "state") == "completed", "it is over, and is not run again"
    view = await domain.case(f"{case}.7")
    assert (view.parent, view.status) == (case, "completed")
    assert (await domain.case(case)).status == "running", "the end of the job is told by the port, and by nobody else"
    keyed = text_in(await called(8, asking("submit", "<key>k</key>")), "jobId")
    assert text_in(await called(9, asking("submit", "<key>k</key>")), "jobId") == keyed == f"{case}.8"


async def test_a_callback_reaches_only_flows_that_its_sender_may_send_messages_to(
    server: Server, domain: Domain, pilot: HandPilot
) -> None:  # SE-2
    await domain.deploy(QUESTIONS, project="red")
    told = f"<callback>mendflow:flows/{QUESTIONS.name}/link</callback>"
    unknown = "<callback>mendflow:flows/nobody/link</callback>"
    port = server.runtime.ports["jobs"]
    blue = CaseAccess(can_view=Sight(frozenset({"blue"})), can_end=Sight(frozenset({"blue"})), project="blue")
    refusals = []
    for callback in (told, unknown):
        with pytest.raises(PortFault) as refused:
            await port.handle_request(asking("submit", callback), who="eve", reach=blue)
        refusals.append(str(refused.value).replace(QUESTIONS.name, "nobody"))
    assert refusals[0] == refusals[1], "a flow of others is as unknown as one that is not there"
    red = blue._replace(can_end=Sight(frozenset({"red"})), project="red")
    assert await port.handle_request(asking("submit", told), who="vic", reach=red) is not None


async def test_a_case_that_names_no_callback_hears_on_the_link_that_it_called_by(
    server: Server, domain: Domain, pilot: HandPilot
) -> None:
    heard: list[tuple[str, str, str]] = []

    class Mail:
        async def post(
            self, flow: str, channel: str, message: dict[str, object], *, id: str, who: str, sight: Sight
        ) -> object:
            assert sight == Sight(frozenset({DEFAULT_PROJECT}))
            heard.append((flow, channel, id))
            return None

    server.runtime.messaging.callbacks.router = Mail()
    case = await waits(domain, server)
    live = server.runtime.manager.live[case]
    await server.runtime.ports["jobs"].handle_call(asking("submit", "<callback/>"), live, order(3))
    await pilot.run_all(lambda spec: DONE)
    await until(lambda: heard)
    assert heard[0][:2] == (live.flow.name, "queue.notify") and heard[0][2].startswith(f"{case}.3:")
