"""Secrets that a server gives to jobs: what happens to jobs when its key is unusable, or when limits cannot be taken,
and in which texts of other jobs a secret is masked."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mendflow.core.model.errors import Conflict, InvalidRequest
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.flow import Flow, JobActivity, Parallel
from mendflow.core.model.ids import CaseId, FlowName, ItemId, JobId
from mendflow.core.model.jobs import Job, JobSpec, Limits, Outcome
from mendflow.core.model.named_limits import LimitCount
from mendflow.core.model.secrets import SecretUse, SecretValue
from mendflow.services.api.domain import Domain
from mendflow.services.base import hidden_texts
from mendflow.services.base.hidden_texts import HiddenTexts
from mendflow.services.runtime.server import Server
from mendflow.services.scheduling import secret_service
from mendflow.services.scheduling.limit_service import LimitService
from mendflow.services.scheduling.limit_store import LimitStore
from mendflow.services.scheduling.secret_service import JOB_SECRET_KIND, SecretService, SecretUnavailable
from mendflow.stores.contract import Put
from mendflow.stores.memory import MemoryStore
from mendflow.stores.secret_files import SecretFiles
from tests.patience import PATIENCE_S, until
from tests.services.conftest import HandPilot, server_on

PRIVATE = JobActivity(name="private", command="true", secrets=(SecretUse(name="token", variable="TOKEN"),))
PLAIN = JobActivity(name="plain", command="true")
LIMITED = JobActivity(name="limited", command="true", limits=Limits(named=(("x", 1),)))


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    """Its key is in a file."""
    server = server_on(MemoryStore(), tmp_path, secret_sources=SecretFiles(tmp_path / "secrets.key"))
    await server.open()
    yield server
    await server.close()


async def start(domain: Domain, *jobs: JobActivity) -> str:
    await domain.deploy(Flow(name=FlowName("private"), body=Parallel(name="all", branches=jobs)))
    return (await domain.start("private", {}, who="me")).id


async def set_secret(domain: Domain, value: str) -> None:
    await domain.set_secret("token", SecretValue(value), who="root")


def make_unusable(key: Path, how: str) -> None:
    if how == "mode":
        key.chmod(0o640)
    elif how == "short":
        key.write_text("short\n")
    elif how == "no text":
        key.write_bytes(b"\xff" * 64)
    elif how == "folder":
        key.unlink()
        key.mkdir()
    elif how == "another":
        key.write_text("0123456789abcdef" * 4 + "\n")


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ("mode", "can be read by others: chmod 600"),
        ("short", "holds no key"),
        ("no text", "it is no text"),
        ("folder", "cannot be read"),
        ("another", "it was encrypted with another key"),
    ],
)
async def test_an_unusable_key_fails_the_jobs_that_need_it_and_no_other(
    tmp_path: Path, domain: Domain, pilot: HandPilot, how: str, told: str
) -> None:  # DU-6
    await set_secret(domain, "tell-nobody-42")
    make_unusable(tmp_path / "secrets.key", how)
    case = await start(domain, PRIVATE)
    await start(domain, PLAIN)
    await pilot.sync(want=2, wait_ms=2000)
    assert [each.spec.item for each in pilot.held] == ["plain"]
    assert told in (await domain.why(f"{case}:private")).sentence
    [view] = await domain.secrets()
    assert told in view.problem


async def test_with_its_key_again_a_server_gives_the_secret_to_the_next_job(
    tmp_path: Path, domain: Domain, pilot: HandPilot
) -> None:  # DU-6
    await set_secret(domain, "tell-nobody-42")
    (tmp_path / "secrets.key").chmod(0o640)
    with pytest.raises(InvalidRequest, match="chmod 600"):
        await set_secret(domain, "tell-nobody-43")
    (tmp_path / "secrets.key").chmod(0o600)
    await start(domain, PRIVATE)
    await pilot.sync(want=1, wait_ms=2000)
    assert [each.secrets for each in pilot.held] == [{"token": "tell-nobody-42"}]


async def test_a_secret_that_is_set_again_is_given_as_it_is_now(domain: Domain, pilot: HandPilot) -> None:  # DU-6
    for value in ("tell-nobody-42", "tell-nobody-43"):
        await set_secret(domain, value)
        await start(domain, PRIVATE)
        await pilot.sync(want=1, wait_ms=2000)
        assert [each.secrets for each in pilot.held] == [{"token": value}]
        await pilot.sync(private=Outcome())


async def test_a_secret_of_the_machine_is_given_in_the_default_project_and_hides_none_of_others(
    tmp_path: Path,
) -> None:  # SE-1
    (machine := tmp_path / "machine").mkdir()
    (machine / "token").write_text("of-the-machine-42")
    sources = SecretFiles(tmp_path / "secrets.key", (str(machine),))
    server = server_on(MemoryStore(), tmp_path, secret_sources=sources)
    await server.open()
    try:
        domain, given = Domain(server), {}
        await domain.set_secret("token", SecretValue("of-project-red-42"), who="ann", project="red")
        assert await domain.project_lookup.find("secret", "token") == "red"
        views = await domain.secrets()
        assert [(each.project, bool(each.source)) for each in views] == [("default", True), ("red", False)]
        for project in ("default", "red", "blue"):
            spec = JobSpec(item=ItemId("a"), command="true", secrets=PRIVATE.secrets, project=project)
            job = Job(id=JobId("c/1"), case=CaseId("c"), spec=spec)
            try:
                given[project] = (await server.runtime.secrets.values_for(job))["token"]
            except SecretUnavailable as error:
                given[project] = str(error)
        assert given["default"] == "of-the-machine-42" and given["red"] == "of-project-red-42"
        assert "project blue has no secret token" in given["blue"]
        for project, other in (("default", "red"), ("red", "default")):
            shown = server.hidden.of(project).mask(f"{given['default']} {given['red']}")
            assert given[project] not in shown and given[other] in shown
    finally:
        await server.close()


async def test_jobs_wait_again_when_their_limits_cannot_be_taken(
    domain: Domain, pilot: HandPilot, monkeypatch: pytest.MonkeyPatch
) -> None:  # DU-6
    await domain.set_limit("x", LimitCount(1), who="root")

    async def refused(*_: object) -> frozenset[str]:
        raise Conflict("limit x is changed by several at once")

    with monkeypatch.context() as patched:
        patched.setattr(LimitStore, "take", refused)
        await start(domain, LIMITED, PLAIN)
        await pilot.sync(want=2, wait_ms=200)
        assert "limited" not in [each.spec.item for each in pilot.held]
    for _ in range(20):
        await pilot.sync(want=2, wait_ms=500)
        if len(pilot.held) == 2:
            break
    assert sorted(each.spec.item for each in pilot.held) == ["limited", "plain"]


async def test_whatever_the_error_no_job_that_was_taken_from_the_queue_is_lost(
    domain: Domain, pilot: HandPilot, monkeypatch: pytest.MonkeyPatch
) -> None:  # DU-6
    await set_secret(domain, "tell-nobody-42")
    await domain.set_limit("x", LimitCount(1), who="root")

    async def refused(*_: object) -> dict[str, str]:
        raise InvalidRequest("something that nobody has thought of")

    with monkeypatch.context() as patched:
        patched.setattr(SecretService, "values_for", refused)
        await start(domain, PRIVATE, PLAIN, LIMITED)
        await pilot.sync(want=3, wait_ms=200)
    for _ in range(20):
        await pilot.sync(want=3, wait_ms=500)
        if len(pilot.held) == 3:
            break
    assert sorted(each.spec.item for each in pilot.held) == ["limited", "plain", "private"]
    await pilot.sync(limited=Outcome(), plain=Outcome(), private=Outcome())
    await until_given_back(domain)


async def until_given_back(domain: Domain) -> None:
    async def is_free() -> bool:
        return not (await domain.limit("x")).used

    await until(is_free, "the limit is given back")


async def test_limits_are_given_back_after_an_error_that_nobody_has_thought_of(
    domain: Domain, pilot: HandPilot, monkeypatch: pytest.MonkeyPatch
) -> None:  # DU-6
    await domain.set_limit("x", LimitCount(1), who="root")
    await start(domain, LIMITED)
    await pilot.sync(want=1, wait_ms=2000)
    assert (await domain.limit("x")).used == 1
    failed = asyncio.Event()

    async def broken(_: LimitService) -> None:
        failed.set()
        raise ValueError("a bug")

    with monkeypatch.context() as patched:
        patched.setattr(LimitService, "_give_back_ended", broken)
        await pilot.sync(limited=Outcome())
        await asyncio.wait_for(failed.wait(), PATIENCE_S)
    await until_given_back(domain)


async def test_a_secret_changes_no_result_of_a_job_that_does_not_have_it(domain: Domain, pilot: HandPilot) -> None:
    await set_secret(domain, "postgres")  # DU-6
    case = await start(domain, PRIVATE, PLAIN)
    await pilot.sync(want=2, wait_ms=2000)
    done = Outcome(outputs={"url": "postgres://db/x"}, log_tail="asking postgres")
    await pilot.sync(plain=done, private=Outcome())
    item = await domain.item(case, "plain")
    assert "postgres://db/x" in str(item) and "asking postgres" not in str(item)


def test_a_secret_is_masked_in_logs_and_faults_and_its_former_values_are_forgotten() -> None:  # DU-6
    hidden = HiddenTexts()
    hidden.add("token-of-a-pilot")
    for number in range(100):
        hidden.add_secret("default", "token", f"tell-nobody-{number:03}")
    assert hidden.of("default").mask("tell-nobody-099 tell-nobody-098") == "*************** ***************"
    assert hidden.of("default").mask("tell-nobody-000") == "tell-nobody-000"
    fault = Fault(name="f", category=Category.JOB, message="tell-nobody-099", log_tail="tell-nobody-099")
    shown = hidden.mask_outcome(Outcome(fault=fault, outputs=["tell-nobody-099", "token-of-a-pilot"]), "default")
    assert shown.fault is not None and "tell" not in shown.fault.message + shown.fault.log_tail
    assert shown.outputs == ["tell-nobody-099", "*" * 16]


def test_a_short_secret_is_masked_in_no_text_of_other_jobs() -> None:  # DU-6
    hidden = HiddenTexts()
    hidden.add_secret("default", "year", "2024")
    assert hidden.of("default").mask("on 2024-01-01") == "on 2024-01-01"


async def test_nobody_learns_a_secret_of_another_project_from_what_is_masked(
    server: Server, domain: Domain, pilot: HandPilot
) -> None:  # SE-1
    """Whoever prints guesses would see a right one become stars, and of a log that grows even its beginning."""
    secret = "correct-horse-42"
    await domain.set_secret("token", SecretValue(secret), who="ann", project="red")
    for project in ("blue", "red"):
        flow = Flow(name=FlowName(f"of-{project}"), body=JobActivity(name="guess", command="true"))
        await domain.deploy(flow, project=project)
    shown = {}
    for project in ("blue", "red"):
        case = (await domain.start(f"of-{project}", {}, who="me")).id
        await pilot.sync(want=1, wait_ms=2000)
        fault = Fault(name="exitCode", category=Category.JOB, message=f"not {secret}", log_tail=f"is it {secret}?")
        await pilot.sync(guess=Outcome(fault=fault, log_tail=f"is it {secret}?"))
        shown[project] = str((await domain.item(case, "guess"), await domain.log(f"{case}/1")))
    assert secret in shown["blue"] and "***" not in shown["blue"]
    assert secret not in shown["red"]
    assert server.hidden.of("blue").whole(b"it begins with correct-h") == 24


@pytest.fixture
async def other(server: Server, tmp_path: Path) -> AsyncIterator[Domain]:
    """Another server on the same store, with the same key."""
    other = server_on(server.store, tmp_path, secret_sources=SecretFiles(tmp_path / "secrets.key"))
    await other.open()
    yield Domain(other)
    await other.close()


async def test_a_secret_that_another_server_has_set_is_masked_in_logs_and_faults(
    domain: Domain, other: Domain, pilot: HandPilot, monkeypatch: pytest.MonkeyPatch
) -> None:  # DU-6
    monkeypatch.setattr(secret_service, "LEARNED_MS", 0)
    case = await start(domain, PLAIN)
    await pilot.sync(want=1, wait_ms=2000)
    for value in ("tell-nobody-42", "tell-nobody-43"):
        await set_secret(other, value)
        await pilot.sync()
    told = "it is tell-nobody-42, or tell-nobody-43"
    fault = Fault(name="exitCode", category=Category.JOB, message=told, log_tail=told)
    await pilot.sync(plain=Outcome(fault=fault, log_tail=told))
    shown = str((await domain.item(case, "plain"), await domain.job(f"{case}/1"), await domain.log(f"{case}/1")))
    assert "it is **************, or **************" in shown and "tell-nobody" not in shown


async def test_all_secrets_in_the_store_are_masked_however_many_there_are(
    domain: Domain, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:  # DU-6
    monkeypatch.setattr(hidden_texts, "SECRETS_MAX", 3)
    monkeypatch.setattr(secret_service, "LEARNED_MS", 0)
    values = [f"tell-nobody-{number}" for number in range(5)]
    for number, value in enumerate(values):
        await domain.set_secret(f"token{number}", SecretValue(value), who="root")
    mask = await server.hidden.current("default")
    assert mask.mask(" ".join(values)) == " ".join("*" * len(value) for value in values)
    for number in range(9):
        server.hidden.add_secret("default", f"{number} of the machine", f"not-in-the-store-{number}")
    mask = server.hidden.of("default")
    assert mask.mask(" ".join(values)) == " ".join("*" * len(value) for value in values)
    assert mask.mask("not-in-the-store-5 not-in-the-store-6") == f"not-in-the-store-5 {'*' * 18}"
    await domain.remove_secret("token0", who="root")
    await server.hidden.current("default")
    server.hidden.add_secret("default", "9 of the machine", "not-in-the-store-9")
    assert server.hidden.of("default").mask(" ".join(values[:2])) == f"{values[0]} {'*' * len(values[1])}"


def test_many_secrets_are_learned_in_a_moment() -> None:
    """And not in one that grows with the square of their number: others wait for it."""
    took_s = []
    for count in (2_000, 16_000):
        hidden = HiddenTexts()
        hidden.keep_secrets(f"token{number}" for number in range(count))
        begun_s = time.thread_time()
        for number in range(count):
            hidden.add_secret("default", f"token{number}", f"tell-nobody-{number}")
        took_s.append(time.thread_time() - begun_s)
    assert took_s[1] < 24 * took_s[0] + 0.1, took_s


async def test_a_log_that_was_kept_before_a_secret_was_set_is_shown_without_it(
    domain: Domain, other: Domain, pilot: HandPilot, monkeypatch: pytest.MonkeyPatch
) -> None:  # DU-6
    monkeypatch.setattr(secret_service, "LEARNED_MS", 0)
    case = await start(domain, PLAIN)
    await pilot.sync(want=1, wait_ms=2000)
    await pilot.sync(plain=Outcome(log_tail="it is tell-nobody-42"))
    assert (await domain.log(f"{case}/1")).text == "it is tell-nobody-42"
    await set_secret(other, "tell-nobody-42")
    assert (await domain.log(f"{case}/1")).text == "it is **************"
    assert (await domain.log(f"{case}/1", offset=8)).text == "************"


async def test_a_secret_in_the_store_that_cannot_be_read_stops_neither_pilots_nor_readers(
    server: Server, domain: Domain, pilot: HandPilot
) -> None:  # DU-6
    await server.store.write([Put(JOB_SECRET_KIND, "damaged", b"{}", 0)])
    case = await start(domain, PLAIN)
    await pilot.sync(want=1, wait_ms=2000)
    await pilot.sync(plain=Outcome(log_tail="it is over"))
    assert (await domain.log(f"{case}/1")).text == "it is over"


async def test_a_text_is_cut_when_its_secrets_are_masked(domain: Domain, pilot: HandPilot) -> None:  # DU-6
    await set_secret(domain, secret := "tell-nobody-" * 1_000)
    case = await start(domain, PLAIN)
    await pilot.sync(want=1, wait_ms=2000)
    fault = Fault(name="bad", category=Category.JOB, message=f"{secret} {secret}", log_tail=f"{secret}\n{secret}")
    await pilot.sync(plain=Outcome(fault=fault, log_tail=fault.log_tail))
    shown = str((await domain.item(case, "plain"), await domain.job(f"{case}/1"), await domain.log(f"{case}/1")))
    assert "tell" not in shown and "(cut: it had 24001 characters)" in shown
