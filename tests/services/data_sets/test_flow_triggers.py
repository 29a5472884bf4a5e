"""Triggers of deployed flows: after one deploy or several, they are what the last one said. Each file starts one case,
and ends of cases are told."""

from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from mendflow.core.data.flow_triggers import folder_element
from mendflow.core.model.alerts import Notification, WebhookSpec
from mendflow.core.model.data import StorageElement
from mendflow.core.model.data_sets import DataSetSpec, FolderWatch, Gathering
from mendflow.core.model.errors import BadFlow, Conflict, InvalidRequest, NotFound
from mendflow.core.model.flow import Flow, Input, JobActivity
from mendflow.core.model.flow_files import FlowSource
from mendflow.core.model.flow_triggers import EndNotice, FileArrival, FlowTriggers
from mendflow.core.model.ids import FlowName
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.views import FlowView
from mendflow.services.api.domain import Domain
from mendflow.services.base.clock import SystemClock
from mendflow.services.base.poster import NoPoster
from mendflow.services.cases.flow_file_store import FLOW_FILE_KIND
from mendflow.services.cases.live_case import CaseDocument
from mendflow.services.runtime.server import Server, ServerSettings
from mendflow.stores.contract import StoredDocument
from mendflow.stores.memory import MemoryStore
from mendflow.wiring import WatchedElements
from tests.services.data_sets.kit import cases_of
from tests.services.recovery.kit import FAILED, World

FILE = {"file": Input(type="file", required=True)}
FAST = {"match": "*.csv", "every_ms": 100, "stable_ms": 150}


class Receiver(NoPoster):
    """Whoever gets notifications."""

    def __init__(self) -> None:
        self.got: dict[str, list[Notification]] = {}

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> str:
        self.got.setdefault(url, []).append(msgspec.json.decode(body, type=Notification))
        return ""


class Deployed:
    """A server that looks at folders of this disk, and who is told of ends."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.receiver = Receiver()
        self.world = World(MemoryStore(), folder, ServerSettings(files_roots=None))
        self.begin()

    def begin(self) -> None:
        """A new server on the same store."""
        self.world.server = Server(
            store=self.world.store,
            file_store=self.world.server.file_store,
            clock=SystemClock(),
            settings=ServerSettings(files_roots=None),
            version="test",
            elements=WatchedElements(),
            poster=self.receiver,
        )
        self.world.domain = Domain(self.world.server)
        self.world.pilot.domain = self.world.domain

    def drop(self, name: str, content: str = "hello", folder: str = "in") -> Path:
        path = self.folder / folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        return path

    def arrival(self, folder: str = "in", **more: object) -> FileArrival:
        (self.folder / folder).mkdir(exist_ok=True)
        given = {"input": "file", "folder": str(self.folder / folder), **FAST, **more}
        return msgspec.convert(given, FileArrival)

    async def deploy(self, triggers: FlowTriggers | None, command: str = "true", **more: object) -> FlowView:
        return await self.world.domain.deploy_with_triggers(flow(triggers, command, **more), who="ann")

    async def cases(self, count: int) -> list[CaseDocument]:
        """So many cases, once there are."""

        async def there() -> list[CaseDocument]:
            found = await cases_of(self.world.store)
            return found if len(found) >= count else []

        found: list[CaseDocument] = await self.world.until(there, f"{count} cases")
        assert len(found) == count
        return found

    async def names(self) -> list[str]:
        return sorted(case.inputs["file"]["name"] for case in await cases_of(self.world.store))

    async def known(self, count: int) -> None:
        """Wait until the one watch has taken so many files."""

        async def reached() -> bool:
            [view] = await self.world.domain.watches()
            return view.known == count and not view.unsettled

        await self.world.until(reached, f"{count} files")


def flow(triggers: FlowTriggers | None, command: str = "true", **more: object) -> Flow:
    body = JobActivity(name="work", command=command)
    given = {"name": FlowName("f"), "inputs": FILE, "body": body, "triggers": triggers, **more}
    return Flow(**given)  # type: ignore[arg-type]  # as the test says


@pytest.fixture
async def deployed(tmp_path: Path) -> AsyncIterator[Deployed]:
    made = Deployed(tmp_path)
    await made.world.server.open()
    yield made
    await made.world.server.close()


def tells(*receivers: str, on: tuple[str, ...] = ("failed",)) -> EndNotice:
    return msgspec.convert({"on": on, "notify": receivers}, EndNotice)


async def test_each_file_that_arrives_in_a_folder_starts_one_case(deployed: Deployed) -> None:
    view = await deployed.deploy(FlowTriggers(files=deployed.arrival()))
    assert view.triggers is not None and view.triggers.files is not None
    deployed.drop("a.csv", "same")
    deployed.drop("b.csv", "same")
    deployed.drop("c.txt")
    await deployed.cases(2)
    assert await deployed.names() == ["a.csv", "b.csv"]
    assert {case.owner for case in await deployed.cases(2)} == {"ann"}
    [watch] = await deployed.world.domain.watches()
    assert (watch.flow, watch.watch.name, watch.watch.data_set) == ("f", "on-f", "on-f")


async def test_files_of_a_store_do_as_well_and_an_input_of_files_gets_a_list(deployed: Deployed) -> None:
    element = StorageElement(name="drop", url=f"file://{deployed.folder}/store")
    await deployed.world.domain.put_element(element, who="ann")
    deployed.drop("a.csv", folder="store/in")
    files = FileArrival(input="file", element="drop", prefix="in", match="*.csv", every_ms=100, stable_ms=150)
    await deployed.deploy(FlowTriggers(files=files), inputs={"file": Input(type="files", required=True)})
    [case] = await deployed.cases(1)
    assert [each["logical"] for each in case.inputs["file"]] == ["/in/a.csv"]


async def test_two_deploys_make_one_watch_and_no_file_counts_twice(deployed: Deployed) -> None:
    triggers = FlowTriggers(files=deployed.arrival())
    first = await deployed.deploy(triggers)
    deployed.drop("a.csv")
    await deployed.cases(1)
    assert (await deployed.deploy(triggers)).version == first.version
    assert (await deployed.deploy(triggers, "echo other")).version == first.version + 1
    deployed.drop("b.csv")
    await deployed.cases(2)
    assert await deployed.names() == ["a.csv", "b.csv"]
    assert len(await deployed.world.domain.watches()) == len(await deployed.world.domain.data_sets()) == 1


async def test_a_new_version_replaces_what_the_one_before_said(deployed: Deployed) -> None:
    await deployed.deploy(FlowTriggers(files=deployed.arrival(), notices=(tells("http://127.0.0.1:1/a"),)))
    deployed.drop("a.csv")
    await deployed.cases(1)
    files = deployed.arrival("other", input="measured", match="*.dat")
    await deployed.deploy(FlowTriggers(files=files), inputs={"measured": Input(type="file", required=True)})
    deployed.drop("b.csv")
    deployed.drop("c.dat", folder="other")
    await deployed.cases(2)
    await deployed.known(1)
    [case] = [case for case in await deployed.cases(2) if "measured" in case.inputs]
    assert case.inputs["measured"]["name"] == "c.dat"
    assert deployed.world.runtime.triggers.receivers("f", "failed") == []


async def test_without_the_key_nothing_happens_by_itself_any_more(deployed: Deployed) -> None:
    await deployed.deploy(FlowTriggers(files=deployed.arrival(), notices=(tells("http://127.0.0.1:1/a"),)))
    deployed.drop("a.csv")
    await deployed.cases(1)
    assert (await deployed.deploy(None)).triggers is None
    assert await deployed.world.domain.watches() == []
    [kept] = await deployed.world.domain.data_sets()
    assert [each.rule for each in kept.gatherings] == ["taken away"]
    deployed.drop("b.csv")
    await deployed.deploy(FlowTriggers(files=deployed.arrival()))  # b waited for somebody to look, a was done
    await deployed.cases(2)
    assert await deployed.names() == ["a.csv", "b.csv"]


async def test_a_flow_that_is_removed_takes_its_triggers_along(deployed: Deployed) -> None:
    await deployed.deploy(FlowTriggers(files=deployed.arrival()))
    await deployed.world.domain.remove_flow("f", who="ann")
    assert not await deployed.world.domain.watches() and not await deployed.world.domain.flows()
    with pytest.raises(NotFound, match="there is no flow 'f'"):
        await deployed.world.domain.start("f", {}, who="me")
    with pytest.raises(NotFound, match="there is no flow 'f'"):
        await deployed.world.domain.remove_flow("f", who="ann")
    again = await deployed.deploy(None)
    assert again.version == 2  # a version means one flow for good


async def test_a_plain_deploy_leaves_the_triggers_as_they_are(deployed: Deployed) -> None:
    await deployed.deploy(FlowTriggers(files=deployed.arrival()))
    for other in (flow(None, "echo x"), flow(FlowTriggers(notices=(tells("http://127.0.0.1:1/a"),)))):
        view = await deployed.world.domain.deploy(other)
        assert view.triggers == FlowTriggers(files=deployed.arrival())


async def test_triggers_that_cannot_be_are_refused_and_nothing_is_deployed(deployed: Deployed) -> None:
    domain = deployed.world.domain
    gone = FileArrival(input="file", folder=f"{deployed.folder}/gone")
    wrong: list[tuple[FlowTriggers, type[Exception], str]] = [
        (FlowTriggers(files=FileArrival(input="file", element="drop")), NotFound, "no storage element 'drop'"),
        (FlowTriggers(files=gone), InvalidRequest, "on.files.in: .*gone is not there.*make it there"),
        (FlowTriggers(files=deployed.arrival(input="nope")), BadFlow, "on.files.input: the flow has no input `nope`"),
        (FlowTriggers(files=deployed.arrival(match="[")), BadFlow, "on.files.match"),
        (FlowTriggers(notices=(tells("ftp://x/y"),)), InvalidRequest, "not an address for a webhook"),
        (FlowTriggers(notices=(tells("pager"),)), NotFound, "no webhook 'pager'.*webhooks add URL --name pager"),
        (FlowTriggers(notices=(tells(),)), BadFlow, "to whom"),
    ]
    for triggers, kind, told in wrong:
        with pytest.raises(kind, match=told):
            await deployed.deploy(triggers)
    assert not await domain.flows() and not await domain.watches() and not await domain.data_sets()


async def test_names_that_others_have_are_not_taken_over(deployed: Deployed) -> None:
    domain, triggers = deployed.world.domain, FlowTriggers(files=deployed.arrival())
    await domain.put_element(StorageElement(name="disk", url=f"file://{deployed.folder}/in"), who="ann")
    await domain.put_watch(FolderWatch(name="on-f", element="disk", data_set="raw"), who="ann")
    with pytest.raises(Conflict, match="its watch would be on-f"):
        await deployed.deploy(triggers)
    await domain.remove_watch("on-f", who="ann")
    await domain.deploy(msgspec.structs.replace(flow(None), name=FlowName("g")))
    await domain.put_data_set(DataSetSpec(name="on-f", gatherings=(Gathering(name="x", flow="g", count=1),)), who="bob")
    with pytest.raises(Conflict, match="its data set would be on-f"):
        await deployed.deploy(triggers)


async def test_what_belongs_to_a_trigger_is_changed_by_deploying_only(deployed: Deployed) -> None:
    domain = deployed.world.domain
    await domain.add_webhook(WebhookSpec(url="http://127.0.0.1:1/hook", name="pager", on=()), who="ann")
    await deployed.deploy(FlowTriggers(files=deployed.arrival(), notices=(tells("pager"),)))
    told = "belongs to flow f: change its `on:`"
    with pytest.raises(Conflict, match=told):
        await domain.remove_watch("on-f", who="ann")
    with pytest.raises(Conflict, match=told):
        await domain.put_watch(FolderWatch(name="on-f", element="disk", data_set="raw"), who="ann")
    with pytest.raises(Conflict, match=told):
        await domain.put_data_set(DataSetSpec(name="on-f"), who="bob")
    with pytest.raises(Conflict, match=told):
        await domain.close_set("on-f", who="bob")
    with pytest.raises(Conflict, match="flow f tells webhook pager"):
        await domain.remove_webhook("pager", who="ann")


async def test_a_crash_between_the_writes_of_a_deploy_is_made_good(deployed: Deployed) -> None:
    """The triggers are on disk, the data set is not defined yet."""
    triggers, runtime = FlowTriggers(files=deployed.arrival()), deployed.world.runtime
    await deployed.world.domain.put_element(folder_element(deployed.arrival().folder), who="ann")
    await runtime.flows.deploy(flow(triggers))
    await runtime.triggers.put(flow(triggers), who="ann")
    await deployed.world.server.close()
    deployed.begin()
    await deployed.world.server.open()
    deployed.drop("a.csv")
    await deployed.cases(1)


async def test_a_restart_finds_the_files_that_came_meanwhile_and_none_again(deployed: Deployed) -> None:
    await deployed.deploy(FlowTriggers(files=deployed.arrival()))
    deployed.drop("a.csv")
    await deployed.cases(1)
    await deployed.world.server.close()
    deployed.drop("b.csv")
    deployed.begin()
    await deployed.world.server.open()
    await deployed.known(2)
    await deployed.cases(2)
    assert await deployed.names() == ["a.csv", "b.csv"]


async def ended(deployed: Deployed, outcome: Outcome) -> str:
    """A case of the flow that ended so."""
    case = (await deployed.world.domain.start("f", {"file": "http://127.0.0.1:1/x"}, who="me")).id
    await deployed.world.pilot.sync(want=1)
    await deployed.world.pilot.exchange({"work": outcome})
    await deployed.world.until_status(case, "completed", "failed")
    return case


async def test_ends_are_told_as_the_flow_says_to_addresses_and_webhooks(deployed: Deployed) -> None:
    domain, got = deployed.world.domain, deployed.receiver.got
    await domain.add_webhook(WebhookSpec(url="http://127.0.0.1:1/pager", name="pager", on=()), who="ann")
    await domain.add_webhook(WebhookSpec(url="http://127.0.0.1:1/all", name="all", on=("failed",)), who="ann")
    failure = tells("http://127.0.0.1:1/a", "pager", "all")
    finished = tells("http://127.0.0.1:1/end", on=("completed", "failed", "cancelled"))
    await deployed.deploy(FlowTriggers(notices=(failure, finished)))
    bad, good = await ended(deployed, FAILED), await ended(deployed, Outcome())

    async def told() -> bool:
        return sum(map(len, got.values())) >= 5

    await deployed.world.until(told)
    assert {url: [(each.case, each.kind) for each in got[url] if each.kind != "alert"] for url in got} == {
        "http://127.0.0.1:1/a": [(bad, "failed")],
        "http://127.0.0.1:1/pager": [(bad, "failed")],
        "http://127.0.0.1:1/all": [(bad, "failed")],  # once, although it wants all failures anyway
        "http://127.0.0.1:1/end": [(bad, "failed"), (good, "completed")],
    }


async def test_triggers_take_effect_also_if_the_file_of_the_flow_cannot_be_kept(
    deployed: Deployed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who is told that the flow is deployed, but not its file, relies on the rest."""
    given = FlowTriggers(files=deployed.arrival())
    await deployed.world.domain.deploy(flow(given, source=FlowSource(file="f.yaml", text="# first")), who="ann")
    store = deployed.world.server.store
    get = store.get

    async def outdated(kind: str, id: str) -> StoredDocument | None:
        found = await get(kind, id)
        return replace(found, version=found.version + 1) if found is not None and kind == FLOW_FILE_KIND else found

    monkeypatch.setattr(store, "get", outdated)
    with pytest.raises(Conflict, match="is deployed, but not its file"):
        await deployed.deploy(given, source=FlowSource(file="f.yaml", text="# other"))
    assert (await deployed.world.domain.flow("f")).triggers == given
    assert [each.flow for each in await deployed.world.domain.watches()] == ["f"]


async def test_triggers_that_do_not_take_effect_are_told_with_what_is_deployed(
    deployed: Deployed, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refused(flow: Flow, *, who: str) -> None:
        raise Conflict(f"the triggers of flow {flow.name} are changed by several at once")

    monkeypatch.setattr(deployed.world.server.runtime.triggers, "put", refused)
    told = r"flow f is deployed, and its `on` may not be in effect, or only in part: the triggers .*; deploy it again"
    with pytest.raises(Conflict, match=told):
        await deployed.deploy(FlowTriggers(files=deployed.arrival()))
    assert (await deployed.world.domain.flow("f")).version == 1
