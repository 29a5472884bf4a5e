"""The file of a flow is kept beside the version that was made of it, for whoever looks at the flow or at a case."""

from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from mendflow.core.data.url_passwords import hide_passwords
from mendflow.core.model.errors import BadFlow, Conflict, Forbidden, InvalidRequest
from mendflow.core.model.flow import UNSENT_FOLDER, Call, Flow, Input, JobActivity
from mendflow.core.model.flow_files import FileBeside, FlowSource
from mendflow.core.model.ids import FlowName
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.retention import GRACE_MIN_MS
from mendflow.core.model.rules import RuleSet
from mendflow.core.model.schedules import ScheduleSpec
from mendflow.core.model.values import FileRef
from mendflow.core.model.views import CaseQuery
from mendflow.services.api.domain import Domain
from mendflow.services.base.clock import SystemClock
from mendflow.services.base.cluster import ServerDocument
from mendflow.services.cases.flow_file_store import (
    FLOW_FILE_KIND,
    NO_FILE,
    NO_FILE_OF_CALLED,
    NO_FILE_OF_EXLET,
    NOTED_MS,
)
from mendflow.services.cases.live_case import journal_of
from mendflow.services.runtime.server import Server
from mendflow.stores.contract import StoredDocument
from mendflow.stores.memory import MemoryStore
from tests.services.conftest import HandPilot, server_on
from tests.services.test_repairs import failed, rules_for

TEXT = "# why it is so\njobs: {a: first}\n"
MODEL = Flow(name=FlowName("qc"), body=JobActivity(name="a", command="first"))
FIRST = replace(MODEL, source=FlowSource(file="qc.yaml", text=TEXT))
CHANGED = replace(
    MODEL, body=JobActivity(name="a", command="changed"), source=FlowSource(file="qc.yaml", text="jobs: {a: changed}")
)


def minutes_pass(server: Server) -> None:
    assert isinstance(server.clock, SystemClock)
    server.clock.catch_up(server.clock.now() + GRACE_MIN_MS + NOTED_MS)


async def test_a_flow_and_its_cases_have_the_file_of_their_version(domain: Domain) -> None:
    deployed = await domain.deploy(FIRST, who="ann")
    case = await domain.start("qc", {}, who="ann")
    await domain.deploy(CHANGED, who="ben")
    newest = await domain.flow_file("qc")
    assert (newest.file, newest.text, newest.by) == ("qc.yaml", "jobs: {a: changed}", "ben")
    of_case = await domain.flow_file_of(case.id)
    assert (of_case.text, of_case.digest, of_case.by) == (TEXT, deployed.digest, "ann")


BAD_NAMES = ["../../x.yaml", "", "/etc/passwd", "a//b.yaml", "./a.yaml", "a\nb.yaml", "a\x1b[2J", "a\\b", " a.yaml"]


@pytest.mark.parametrize("file", BAD_NAMES)
@pytest.mark.parametrize("is_deployed", [True, False])
async def test_a_flow_file_is_named_by_a_plain_path(domain: Domain, file: str, is_deployed: bool) -> None:  # SE-1
    flow = replace(MODEL, source=FlowSource(file=file, text=TEXT))
    refusal = r"`source\.file` is .*; send the name of its file alone, such as night\.yaml"
    with pytest.raises(InvalidRequest, match=refusal):
        await (domain.deploy(flow) if is_deployed else domain.start_with_flow(flow, {}, who="me"))
    assert not await domain.flows(), "nothing of it is kept"


@pytest.mark.parametrize("file", ["qc.yaml", "qc [2] 50%.yaml", "nights/qc.yaml", "Größe.yaml", ".qc.yaml"])
async def test_flow_files_are_kept_under_the_names_that_people_give(domain: Domain, file: str) -> None:
    await domain.deploy(replace(MODEL, source=FlowSource(file=file, text=TEXT)))
    assert (await domain.flow_file("qc")).file == file


async def test_a_file_is_no_part_of_the_model(domain: Domain) -> None:
    deployed = await domain.deploy(FIRST, who="ann")
    other = replace(FIRST, source=FlowSource(file="qc.yaml", text=f"# more\n{TEXT}"))
    again = await domain.deploy(other, who="ann")
    assert (again.version, again.digest) == (1, deployed.digest), "other comments are no other version"
    assert (await domain.flow_file("qc")).text == f"# more\n{TEXT}"
    view = await domain.flow("qc")
    assert view.flow is not None and view.flow.source is None
    assert (await domain.deploy(MODEL, who="ann")).digest == deployed.digest
    assert (await domain.flow_file("qc")).text, "the model alone takes nothing away"


async def test_a_case_that_is_started_from_a_file_has_it(domain: Domain) -> None:
    tried = await domain.start_with_flow(FIRST, {}, who="ben")
    assert (await domain.flow_file_of(tried.id)).text == TEXT == (await domain.flow_file("qc")).text
    await domain.deploy(FIRST, who="ann")
    again = replace(FIRST, source=FlowSource(file="mine.yaml", text="jobs: {a: first}"))
    await domain.start_with_flow(again, {}, who="ben")
    assert (await domain.flow_file("qc")).file == "qc.yaml", "what is deployed keeps the file that it was deployed from"


async def test_a_version_without_a_file_says_why(domain: Domain) -> None:
    await domain.deploy(MODEL, who="ann")
    found = await domain.flow_file("qc")
    assert (found.text, found.reason) == ("", NO_FILE)
    large = FlowSource(file="qc.yaml", left_out="the file is larger than 1 MB")
    await domain.deploy(replace(MODEL, source=large), who="ann")
    found = await domain.flow_file("qc")
    assert (found.file, found.text, found.reason) == ("qc.yaml", "", "the file is larger than 1 MB")


async def test_nor_is_the_file_of_a_flow_that_comes_with_it(server: Server, domain: Domain) -> None:
    inner = Flow(
        name=FlowName("inner"),
        body=JobActivity(name="b", command="second"),
        source=FlowSource(file="inner.yaml", text="# ftp://ann:hush@host/in"),
    )
    middle = Flow(name=FlowName("middle"), body=JobActivity(name="c", command="third"), calls=(inner,))
    deployed = await domain.deploy(replace(MODEL, calls=(middle,)), who="ann")
    again = await domain.deploy(replace(MODEL, calls=(replace(middle, calls=(replace(inner, source=None),)),)))
    assert again.digest == deployed.digest
    case = await domain.start_with_flow(replace(MODEL, name=FlowName("sent"), calls=(inner,)), {}, who="ben")
    await domain.put_rules(RuleSet(name="qc", exlets={"inner": replace(inner, exlet=True, calls=(middle,))}), who="me")
    stored = [found.body for kind in await server.store.kinds() async for found in server.store.scan(kind)]
    stored += await server.store.read(journal_of(case.id))
    assert stored and not any(b"hush" in body or b"inner.yaml" in body for body in stored)


async def test_an_older_version_keeps_the_file_that_it_was_deployed_from(domain: Domain) -> None:
    await domain.deploy(FIRST, who="ann")
    case = await domain.start("qc", {}, who="ann")
    await domain.deploy(CHANGED, who="ann")
    mine = replace(FIRST, source=FlowSource(file="mine.yaml", text="# mine"))
    tried = await domain.start_with_flow(mine, {}, who="ben")
    assert tried.digest == case.digest
    for each in (case, tried):
        assert ((found := await domain.flow_file_of(each.id)).text, found.by) == (TEXT, "ann")
    await domain.deploy(mine, who="cem")
    assert (await domain.flow_file_of(case.id)).by == "cem", "whoever deploys it again says what its file is"


@pytest.mark.parametrize("by", ["deploying", "a schedule"])
async def test_an_older_version_that_was_deployed_without_a_file_gets_none(domain: Domain, by: str) -> None:
    if by == "deploying":
        await domain.deploy(MODEL, who="ann")
    else:
        await domain.start_with_flow(MODEL, {}, who="ann")
        await domain.put_schedule(ScheduleSpec(name="nightly", flow="qc", cron="0 3 * * *"), who="ann")
    case = await domain.start("qc", {}, who="ann")
    await domain.deploy(CHANGED, who="ann")
    await domain.start_with_flow(FIRST, {}, who="ben")
    assert (await domain.flow_file_of(case.id)).reason == NO_FILE


@pytest.mark.parametrize("by", ["deploying", "a schedule"])
async def test_a_version_that_is_deployed_after_it_was_tried_keeps_its_file(domain: Domain, by: str) -> None:
    case = await domain.start_with_flow(FIRST, {}, who="ann")
    if by == "deploying":
        await domain.deploy(MODEL, who="ann")
    else:
        await domain.put_schedule(ScheduleSpec(name="nightly", flow="qc", cron="0 3 * * *"), who="ann")
    await domain.deploy(CHANGED, who="ann")
    await domain.start_with_flow(replace(FIRST, source=FlowSource(file="mine.yaml", text="# mine")), {}, who="ben")
    assert ((found := await domain.flow_file_of(case.id)).text, found.by) == (TEXT, "ann")


async def test_the_file_that_was_sent_last_is_kept_whichever_server_had_which(tmp_path: Path) -> None:
    store = MemoryStore()
    servers = [server_on(store, tmp_path / name, server=ServerDocument(id=name, url="")) for name in ("s1", "s2")]
    for each in servers:
        await each.open()
    first, second = (Domain(each) for each in servers)
    other = replace(FIRST, source=FlowSource(file="qc.yaml", text="# other"))
    for domain, flow in ((first, FIRST), (second, other), (first, FIRST)):
        await domain.deploy(flow, who="ann")
    assert (await second.flow_file("qc")).text == TEXT
    for each in servers:
        await each.close()


async def test_a_file_that_cannot_be_kept_is_no_success(
    server: Server, domain: Domain, monkeypatch: pytest.MonkeyPatch
) -> None:
    await domain.deploy(FIRST, who="ann")
    get = server.store.get

    async def outdated(kind: str, id: str) -> StoredDocument | None:
        found = await get(kind, id)
        return replace(found, version=found.version + 1) if found is not None and kind == FLOW_FILE_KIND else found

    monkeypatch.setattr(server.store, "get", outdated)
    other = replace(FIRST, source=FlowSource(file="qc.yaml", text="# other"))
    for _ in range(2):
        with pytest.raises(Conflict, match="flow qc is deployed, but not its file: that is sent by several at once"):
            await domain.deploy(other, who="ann")
    started = replace(other, name=FlowName("tried"))
    await domain.start_with_flow(started, {}, who="ann")
    with pytest.raises(Conflict, match="the file of flow tried is sent by several at once"):
        await domain.start_with_flow(replace(started, source=FlowSource(file="t.yaml", text="# t")), {}, who="ann")


async def test_a_file_that_is_sent_again_is_the_first_senders_and_in_use(server: Server, domain: Domain) -> None:
    case = await domain.start_with_flow(FIRST, {}, who="ann")
    minutes_pass(server)
    now = server.clock.now()
    await domain.start_with_flow(FIRST, {}, who="ben")
    found = await domain.flow_file_of(case.id)
    assert found.by == "ann" and found.at < now
    kept = await server.store.get(FLOW_FILE_KIND, f"qc@{case.digest}")
    assert kept is not None and msgspec.json.decode(kept.body)["used_at"] >= now


async def test_a_called_flow_and_an_exlet_say_why_they_have_no_file(domain: Domain, pilot: HandPilot) -> None:
    inner = Flow(name=FlowName("inner"), body=JobActivity(name="a", command="first"))
    outer = Flow(
        name=FlowName("outer"),
        body=Call(name="c", flow=FlowName("inner")),
        calls=(inner,),
        source=FlowSource(file="outer.yaml", text=TEXT),
    )
    await domain.put_rules(rules_for("inner", again="fault.exit_code == 7"), who="ann")
    await domain.deploy(outer, who="ann")
    await domain.start("outer", {}, who="ann")
    await pilot.run_all(lambda spec: failed(7) if spec.env.get("MENDED") != "yes" else Outcome())
    cases = {each.flow: each for each in (await domain.find_cases(CaseQuery())).rows}
    reasons = {flow: (await domain.flow_file_of(each.id)).reason for flow, each in cases.items()}
    assert reasons == {"outer": "", "inner": NO_FILE_OF_CALLED, "again": NO_FILE_OF_EXLET}


async def test_of_a_flow_that_is_removed_the_files_stay_that_its_cases_have(server: Server, domain: Domain) -> None:
    await domain.deploy(FIRST, who="ann")
    case = await domain.start("qc", {}, who="ann")
    await domain.deploy(CHANGED, who="ann")
    await domain.deploy(replace(FIRST, name=FlowName("qc2")), who="ann")
    minutes_pass(server)
    await domain.remove_flow("qc", who="ann")
    assert (await domain.flow_file_of(case.id)).text == TEXT
    assert [found.id async for found in server.store.scan(FLOW_FILE_KIND, "qc@")] == [f"qc@{case.digest}"]
    assert (await domain.flow_file("qc2")).text == TEXT


async def test_the_file_of_a_start_that_is_under_way_stays_when_its_flow_is_removed(
    server: Server, domain: Domain
) -> None:
    await domain.deploy(FIRST, who="ann")
    minutes_pass(server)
    await server.runtime.flows.version_sent_with_start(CHANGED, who="ben")
    await domain.remove_flow("qc", who="ann")
    kept = [found.id async for found in server.store.scan(FLOW_FILE_KIND, "qc@")]
    assert kept == [f"qc@{server.runtime.flows.digest(replace(CHANGED, source=None))}"]


def test_no_password_of_a_url_is_kept() -> None:
    text = "a: s3://me:pass@word@host/x # https://me:${{ inputs.p }}@host\nb: http://host:80/x, mail: me@host"
    assert hide_passwords(text) == text.replace("pass@word", "(hidden)")


async def test_a_file_beside_that_was_not_sent_is_refused_and_a_stored_one_is_told(domain: Domain) -> None:
    job = JobActivity(name="run", command="python sim.py", inputs={"sim.py": "sim.py", "x": "/data/x"})
    alone = replace(MODEL, body=job, folder=UNSENT_FOLDER)
    for give in (domain.deploy(alone, who="ann"), domain.start_with_flow(alone, {}, who="ann")):
        with pytest.raises(BadFlow, match=r"job run: sim\.py is beside the flow's file, and was not sent") as refused:
            await give
        assert "/data/x" not in refused.value.message and "domain" not in refused.value.message
    stored = FileRef(sha256="a" * 64, bytes=3, name="sim.py")
    sent = replace(alone, body=replace(job, inputs={"sim.py": stored.as_value()}))
    await domain.deploy(sent, who="ann")
    assert (await domain.flow_file("qc")).beside == [FileBeside(path="sim.py", file=stored)]


@pytest.mark.parametrize(
    ("declared", "told"),
    [
        (
            Input(type="file", default="a.txt"),
            r"input data: a\.txt, its default, is beside .* not sent: add it in",
        ),
        (
            Input(type="files", default=["/d/b.txt", "a.txt"]),
            r"input data: a\.txt, its default, .* not sent: add it",
        ),
        (Input(type="files", default="*.txt"), r"input data: \*\.txt, its default, .* list the paths that it means"),
    ],
)
async def test_a_default_that_was_not_sent_is_refused(domain: Domain, declared: Input, told: str) -> None:
    alone = replace(MODEL, inputs={"data": declared, "text": Input(default="a.txt")}, folder=UNSENT_FOLDER)
    with pytest.raises(BadFlow, match=told) as refused:
        await domain.deploy(alone, who="ann")
    assert "/d/b.txt" not in refused.value.message and "input text" not in refused.value.message


async def test_a_path_that_a_case_is_given_says_that_the_files_beside_it_were_not_sent(domain: Domain) -> None:
    flow = replace(MODEL, inputs={"data": Input(type="file")}, folder=UNSENT_FOLDER)
    await domain.deploy(flow, who="ann")
    with pytest.raises(Forbidden, match="was not sent"):
        await domain.start("qc", {"data": "reads.txt"}, who="ann")
