"""A digest alone opens no file of the host: neither for a job that another domain has sent, nor for that domain."""

import hashlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mendflow.core.model.data import LogicalFile, Publication, Replica, StorageElement
from mendflow.core.model.data_sets import DataSetSpec, FolderWatch, Gathering
from mendflow.core.model.domains import DomainRights, SentWork, WorkStatus
from mendflow.core.model.flow import Call, Flow, Input, JobActivity, Sequence
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.values import FileRef
from mendflow.services.domains.hosted_work import HostedWorks
from tests.services.domains.by_hand import HandOrigin, sent_flow, sent_job
from tests.services.domains.kit import Domains
from tests.services.recovery.kit import flow

SECRET = b"a file of the host"
DIGEST = hashlib.sha256(SECRET).hexdigest()
FORGED = f'${{{{ {{"$file": "{DIGEST}", "bytes": {len(SECRET)}, "name": "x"}} }}}}'


async def once(content: bytes) -> AsyncIterator[bytes]:
    yield content


def hosted(domains: Domains) -> HostedWorks:
    return domains.away.runtime.domains.hosted


async def ended(domains: Domains, origin: HandOrigin, key: str = "k-1") -> WorkStatus:
    """How a piece of work has ended, as its origin is told."""

    async def told() -> WorkStatus | None:
        status = (await origin.say(hosted(domains))).get(key)
        return status if status is not None and status.state == "ended" else None

    found: WorkStatus = await domains.away.until(told, "its end")
    return found


async def refused(domains: Domains, sent: Flow, rights: DomainRights | None = None) -> str:
    """Why a flow that was sent has failed."""
    await domains.away.server.file_store.keep("secret", once(SECRET))
    origin = HandOrigin(rights)
    await origin.say(hosted(domains), sent_flow(sent))
    status = await ended(domains, origin)
    assert not hosted(domains).may_read("home", DIGEST)
    assert not domains.away.pilot.held
    assert status.outcome is not None and status.outcome.fault is not None, status
    return status.outcome.fault.message


async def test_a_flow_that_was_sent_cannot_return_a_file_that_it_only_knows_the_digest_of(tmp_path: Path) -> None:
    async with Domains(tmp_path, recovery=False) as domains:
        sent = flow(Sequence(name="s", body=()), "sent", outputs={"stolen": FORGED})
        assert "neither came with the work" in await refused(domains, sent)


async def test_a_job_of_a_sent_flow_gets_no_file_that_it_only_knows_the_digest_of(tmp_path: Path) -> None:
    async with Domains(tmp_path, recovery=False) as domains:
        sent = flow(JobActivity(name="j", command="cat x", inputs={"x": FORGED}), "sent")
        assert "neither came with the work" in await refused(domains, sent)


async def test_one_of_our_flows_is_given_no_file_that_its_caller_only_knows_the_digest_of(tmp_path: Path) -> None:
    async with Domains(tmp_path, recovery=False) as domains:
        count = JobActivity(name="j", command="wc x", inputs={"x": "${{ inputs.f }}"})
        await domains.away.domain.deploy(flow(count, "count", inputs={"f": Input(type="file")}))
        sent = flow(Call(name="c", flow="count", inputs={"f": FORGED}), "sent")
        assert "neither came with the work" in await refused(domains, sent, DomainRights(flows=("count",)))


async def test_a_job_names_no_stored_file_as_the_source_of_an_input(tmp_path: Path) -> None:
    async with Domains(tmp_path) as domains:
        await domains.away.server.file_store.keep("secret", once(SECRET))
        work = sent_job(replicas={"x": (f"kept:{DIGEST}",)})
        said = await HandOrigin().say(hosted(domains), work)
        assert said["k-1"].state == "missing-files" and said["k-1"].missing == (DIGEST,)


async def test_what_a_job_tells_of_itself_opens_no_file(tmp_path: Path) -> None:
    async with Domains(tmp_path) as domains:
        origin = HandOrigin()
        await origin.say(hosted(domains), sent_job())
        assert await domains.away.take() == ["align"]
        forged = FileRef(sha256=DIGEST, bytes=len(SECRET), name="x").as_value()
        await domains.away.report(align=Outcome(outputs={}, values={"x": forged}))
        assert (await ended(domains, origin)).outcome is not None
        assert not hosted(domains).may_read("home", DIGEST)


async def test_files_that_its_jobs_made_go_from_job_to_job_and_to_the_origin(tmp_path: Path) -> None:
    async with Domains(tmp_path) as domains:
        made = await domains.away.server.file_store.keep("out", once(b"made here"))
        body = Sequence(
            name="s",
            body=(
                JobActivity(name="a", command="make", files={"out": "out"}),
                JobActivity(name="b", command="use", inputs={"x": "${{ jobs.a.files.out }}"}),
            ),
        )
        origin = HandOrigin()
        await origin.say(hosted(domains), sent_flow(flow(body, "sent", outputs={"out": "${{ jobs.a.files.out }}"})))
        assert await domains.away.take() == ["a"]
        await domains.away.report(a=Outcome(outputs={}, files={"out": made}))
        await domains.away.restart()
        assert await domains.away.take() == ["b"]
        await domains.away.report(b=Outcome(outputs={}))
        status = await ended(domains, origin)
        assert status.outcome is not None and status.outcome.ok, status
        assert hosted(domains).may_read("home", made.sha256)


async def test_a_file_that_came_with_work_that_is_here_is_not_asked_for_again_after_a_restart(tmp_path: Path) -> None:
    async with Domains(tmp_path) as domains:
        content = await domains.away.server.file_store.keep("in", once(b"of the origin"))
        hosted(domains).file_delivered("home", content.sha256)
        await HandOrigin().say(hosted(domains), sent_job(files=[content]))
        await domains.away.restart()
        said = await HandOrigin().say(hosted(domains), sent_job("k-2", files=[content]))
        assert said["k-2"].state == "running"


@pytest.mark.parametrize(
    "published",
    [
        Publication(logical="/in/x"),
        Publication(logical="/in/x", element="store"),
        Publication(url="file:///data/./in//x"),
    ],
)
async def test_a_published_file_starts_no_flow_by_a_watched_folder(tmp_path: Path, published: Publication) -> None:
    async with Domains(tmp_path, recovery=False) as domains:
        away = domains.away
        await away.domain.deploy(
            flow(JobActivity(name="steal", command="true"), "secret", inputs={"f": Input(type="file")})
        )
        gathering = Gathering(name="g", flow="secret", count=1, inputs={"f": "${{ file }}"})
        await away.runtime.data_sets.define(DataSetSpec(name="raw", gatherings=(gathering,)), who="me")
        await away.runtime.catalogue.elements.put(StorageElement(name="store", url="file:///data"), replace=False)
        await away.runtime.watches.add(FolderWatch(name="w", element="store", data_set="raw", prefix="in"), who="me")
        origin = HandOrigin()
        await origin.say(hosted(domains), sent_job(publish={"out": published}))
        status = await ended(domains, origin)
        assert status.outcome is not None and status.outcome.fault is not None
        assert "files start the flow 'secret'" in status.outcome.fault.message


async def test_a_published_file_beside_a_watched_folder_is_nobodys_business(tmp_path: Path) -> None:
    async with Domains(tmp_path) as domains:
        away = domains.away
        await away.runtime.catalogue.elements.put(StorageElement(name="store", url="file:///data"), replace=False)
        await away.runtime.watches.add(FolderWatch(name="w", element="store", data_set="raw", prefix="in"), who="me")
        work: SentWork = sent_job(publish={"out": Publication(logical="/inner/x")})
        await HandOrigin().say(hosted(domains), work)
        assert await away.take() == ["align"]


async def catalogued(domains: Domains, name: str, content: bytes) -> FileRef:
    """A logical file of the host."""
    catalogue = domains.away.runtime.catalogue
    await catalogue.elements.put(StorageElement(name="store", url="file:///data"), replace=False)
    digest = hashlib.sha256(content).hexdigest()
    file = LogicalFile(name=name, sha256=digest, bytes=len(content), replicas=(Replica(element="store"),))
    return (await catalogue.add(file)).ref()


@pytest.mark.parametrize("logical", ["/any/name", "any/name", "/known", "../x"])
@pytest.mark.parametrize("place", ["inputs", "replicas", "args", "called"])
async def test_a_logical_name_opens_no_file_by_a_digest_that_is_not_its_own(
    tmp_path: Path, logical: str, place: str
) -> None:
    async with Domains(tmp_path, recovery=False) as domains:
        await catalogued(domains, "/known", b"open to all")
        forged = FileRef(sha256=DIGEST, bytes=len(SECRET), name="s.txt", logical=logical)
        work = sent_job(inputs={"s.txt": forged})
        if place == "replicas":
            work = sent_job(inputs={"s.txt": forged}, replicas={"s.txt": ("https://example.org/s.txt",)})
        elif place == "args":
            work = sent_job(args=[{"deep": forged.as_value()}])
        elif place == "called":
            count = JobActivity(name="j", command="wc x", inputs={"x": "${{ inputs.f }}"})
            await domains.away.domain.deploy(flow(count, "count", inputs={"f": Input(type="file")}))
            given = f'${{{{ {{"$file": "{DIGEST}", "name": "x", "logical": "{logical}"}} }}}}'
            work = sent_flow(flow(Call(name="c", flow="count", inputs={"f": given}), "sent"))
        origin = HandOrigin(DomainRights(flows=("count",)))
        await origin.say(hosted(domains), work)
        status = await ended(domains, origin)
        assert status.outcome is not None and status.outcome.fault is not None, status
        assert status.outcome.fault.name == "forbiddenHere"
        assert "it refers to the logical file" in status.outcome.fault.message
        assert not domains.away.pilot.held


async def test_a_flow_of_the_host_is_given_no_file_by_a_logical_name_with_another_digest(tmp_path: Path) -> None:
    async with Domains(tmp_path) as domains:
        await catalogued(domains, "/known", b"open to all")
        count = JobActivity(name="j", command="wc x", inputs={"x": "${{ inputs.f }}"})
        await domains.away.domain.deploy(flow(count, "count", inputs={"f": Input(type="file")}))
        forged = FileRef(sha256=DIGEST, bytes=len(SECRET), name="s.txt", logical="/known")
        work = SentWork(key="k-1", fence=1, name="count", inputs={"f": forged.as_value()})
        said = await HandOrigin(DomainRights(flows=("count",))).say(hosted(domains), work)
        assert said["k-1"].state == "refused" and "it refers to the logical file" in said["k-1"].reason
        assert not domains.away.runtime.manager.live


@pytest.mark.parametrize("with_size", [True, False])
async def test_a_logical_file_of_the_host_is_open_to_work_that_was_sent(tmp_path: Path, with_size: bool) -> None:
    async with Domains(tmp_path) as domains:
        known = await catalogued(domains, "/known", b"open to all")
        ref = known if with_size else FileRef(sha256=known.sha256, bytes=0, name="x", logical="/known")
        await HandOrigin().say(hosted(domains), sent_job(inputs={"x": ref}))
        assert await domains.away.take() == ["align"]
