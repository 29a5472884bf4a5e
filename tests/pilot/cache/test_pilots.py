"""Real pilots that keep files for later jobs, and for each other."""

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from mendflow.core.model.ids import JobId
from mendflow.core.model.jobs import Outcome
from mendflow.pilot.cache.disk import DiskCache
from mendflow.pilot.cache.entries import REST
from tests.patience import PATIENCE_S
from tests.pilot.cache.files import digest_of, read
from tests.pilot.cache.sharing import SharingServer
from tests.pilot.conftest import Pilot

samefile = os.path.samefile
Hire = Callable[..., Pilot]
CONTENT = b"events" * 1000


async def reading(server: SharingServer, content: bytes = CONTENT, **more: object) -> JobId:
    """A job that ends well only if its input is what it should be."""
    ref = server.keep(content)
    return await server.shell(f"echo '{ref.sha256}  in' | sha256sum -c -", inputs={"in": ref}, **more)


async def done(server: SharingServer, job: JobId) -> Outcome:
    outcome = await server.outcome(job)
    assert outcome.ok, outcome.fault
    return outcome


async def test_a_file_is_fetched_for_the_first_job_and_at_hand_for_the_next(
    server: SharingServer, hire: Hire
) -> None:  # FM-6
    hire()
    first = (await done(server, await reading(server))).measures
    second = (await done(server, await reading(server))).measures
    assert (first.fetched_files, first.fetched_bytes, first.cached_files) == (1, len(CONTENT), 0)
    assert (second.fetched_files, second.cached_files, second.cached_bytes) == (0, 1, len(CONTENT))
    assert server.given[digest_of(CONTENT)] == 1


@pytest.mark.full
async def test_what_a_job_made_is_at_hand_for_the_next_step(server: SharingServer, hire: Hire) -> None:
    hire()
    made = await done(server, await server.shell("echo made > out", files={"out": "out"}))
    await server.until(lambda: server.holders(b"made\n") != [], "the server to hear of the file")
    read = await done(server, await server.shell("cat in", inputs={"in": made.files["out"]}))
    assert read.log_tail == "made\n" and read.measures.cached_files == 1 and not server.given


@pytest.mark.full
async def test_pilots_of_a_host_share_by_links_and_those_of_a_site_over_the_line(
    server: SharingServer, hire: Hire, tmp_path: Path
) -> None:  # PJ-6, PJ-11
    site = ("--share", "site", "--share-address", "127.0.0.1", "--site", "s")
    first = hire("--host", "h1", *site, work=tmp_path / "one")
    await done(server, await reading(server))
    first_file = tmp_path / "one" / "cache" / digest_of(CONTENT)
    hire("--host", "h1", *site, work=tmp_path / "two")
    hire("--host", "h2", *site, work=tmp_path / "three")
    await server.until(lambda: server.know_each_other(3), "all to know each other")
    await server.until(lambda: len(server.holders(CONTENT)) == 2, "the one on the same host to have a link")
    assert samefile(first_file, tmp_path / "two" / "cache" / digest_of(CONTENT))
    await asyncio.to_thread(first.end)  # while the server answers: it would else grant the next job to it
    first_file.unlink()
    jobs = [await reading(server) for _ in range(6)]
    outcomes = [await done(server, job) for job in jobs]
    assert server.given[digest_of(CONTENT)] == 1, "nobody needed the server"
    assert sum(outcome.measures.cached_files for outcome in outcomes) == 6
    assert (tmp_path / "three" / "cache" / digest_of(CONTENT)).exists() == any(
        outcome.measures.shared_files for outcome in outcomes
    )


async def test_a_job_with_linked_inputs_reads_the_cache_itself(
    server: SharingServer, hire: Hire, tmp_path: Path
) -> None:
    hire()
    await done(server, await reading(server))
    cached = tmp_path / "work" / "cache" / digest_of(CONTENT)
    ref = server.keep(CONTENT)
    job = await server.shell("stat -c %i in", inputs={"in": ref}, link_inputs=True)
    assert (await done(server, job)).log_tail == f"{os.stat(cached).st_ino}\n"


async def test_a_linked_input_that_a_job_writes_into_is_noticed(
    server: SharingServer, hire: Hire, tmp_path: Path
) -> None:
    hire()
    ref = server.keep(CONTENT)
    job = await server.shell("chmod u+w in; echo more >> in", inputs={"in": ref}, link_inputs=True)
    await done(server, job)
    await done(server, await reading(server))
    assert server.given[ref.sha256] == 2, "the changed one was thrown away"
    assert (tmp_path / "work" / "cache" / ref.sha256).read_bytes() == CONTENT


@pytest.mark.full
async def test_a_pilot_that_was_killed_has_its_cache_again_and_hashes_what_it_gives(
    server: SharingServer, hire: Hire, tmp_path: Path
) -> None:
    pilot = hire()
    other = b"other" * 100
    for content in (CONTENT, other):
        await done(server, await reading(server, content))
    pilot.kill()
    spoiled = tmp_path / "work" / "cache" / digest_of(other)
    seal = spoiled.stat().st_mtime
    spoiled.chmod(0o644)
    spoiled.write_bytes(b"0ther" * 100)
    os.utime(spoiled, (seal, seal))
    pilot.restart()
    for content in (CONTENT, other):
        await done(server, await reading(server, content))
    assert server.given == {digest_of(CONTENT): 1, digest_of(other): 2}


async def test_a_cache_of_no_size_keeps_nothing_and_jobs_have_their_files(
    server: SharingServer, hire: Hire, tmp_path: Path
) -> None:  # PJ-5
    hire("--cache-size", "0", "--min-free", "0")
    for _ in range(2):
        measures = (await done(server, await reading(server))).measures
        assert (measures.fetched_files, measures.cached_files) == (1, 0)
    await server.until(lambda: not list((tmp_path / "work" / "cache").iterdir()), "nothing to be left")


async def test_an_address_of_another_machine_ends_the_pilot_with_advice(server: SharingServer, hire: Hire) -> None:
    pilot = hire("--share", "site", "--share-address", "192.0.2.1:99")
    assert await asyncio.to_thread(pilot.process.wait, PATIENCE_S) == 2
    assert not server.ledger.requests, "it never asked for a job"


@pytest.mark.full
@pytest.mark.waiting
async def test_pilots_that_are_killed_while_they_link_serve_and_fetch_leave_nothing_wrong(
    server: SharingServer, hire: Hire, tmp_path: Path
) -> None:  # PJ-6, PJ-11
    """Two on one host and one on another, each killed again and again while jobs read files from each other's caches.
    Every job checks its inputs itself."""
    site = ("--share", "site", "--share-address", "127.0.0.1", "--site", "s", "--cache-size", "30000000")
    pilots = [
        hire("--host", host, *site, work=tmp_path / name)
        for host, name in (("h1", "one"), ("h1", "two"), ("h2", "three"))
    ]
    server.ledger.lease_ms = 3_000
    contents = [bytes([number]) * (4 << 20) for number in range(10)]
    jobs = []
    end = time.monotonic() + 12
    number = 0
    while time.monotonic() < end:
        jobs += [await reading(server, contents[(number * 3 + each) % 10]) for each in range(4)]
        await asyncio.sleep(0.13 + 0.07 * (number % 5))
        victim = pilots[number % 3]
        victim.kill()
        victim.restart()
        number += 1
    outcomes = [await server.outcome(job) for job in jobs]
    assert not [outcome.fault for outcome in outcomes if outcome.fault is not None and not outcome.fault.infrastructure]
    assert sum(outcome.measures.shared_files for outcome in outcomes) > 3, "files went from pilot to pilot meanwhile"
    for pilot in pilots:
        pilot.end()
    known = {digest_of(content): content for content in contents}
    for name in ("one", "two", "three"):
        folder = tmp_path / name / "cache"
        assert {path.name.removesuffix(REST) for path in folder.iterdir()} <= set(known), "no litter"
        found = DiskCache(folder, 1 << 30)
        assert all(read(found, digest) == known[digest] for digest in found.digests())


SPOIL = "import os; s = os.stat('in'); os.chmod('in', 0o644); f = open('in', 'r+b'); f.write(b'X'); f.close();"
SPOIL += "os.utime('in', ns=(s.st_atime_ns, s.st_mtime_ns)); os.chmod('in', 0o444)"


async def test_a_linked_input_that_a_job_writes_into_and_dates_back_is_given_to_nobody(
    server: SharingServer, hire: Hire, tmp_path: Path
) -> None:  # FM-6
    hire(work=tmp_path / "one")
    ref = server.keep(CONTENT)
    job = await server.shell(f'python3 -c "{SPOIL}"', inputs={"in": ref}, link_inputs=True)
    assert (await done(server, job)).measures.changed_inputs == ("in",)
    hire(work=tmp_path / "two")
    for link in (False, True):
        await done(server, await reading(server, link_inputs=link))
    assert server.given[ref.sha256] == 2, "the changed one was thrown away"
    for work in ("one", "two"):
        cached = tmp_path / work / "cache" / ref.sha256
        assert not cached.exists() or cached.read_bytes() == CONTENT


@pytest.mark.full
async def test_a_job_whose_linked_input_another_changed_meanwhile_fails_and_says_so(
    server: SharingServer, hire: Hire, tmp_path: Path
) -> None:
    hire("--jobs", "2")
    ref = server.keep(CONTENT)
    go, read = tmp_path / "go", tmp_path / "read"
    waits = f"touch {read}; until test -e {go}; do sleep 0.1; done; wc -c < in > out"
    reader = await server.shell(waits, inputs={"in": ref}, files={"out": "out"}, link_inputs=True)
    await server.until(read.exists, "the reader to have begun")
    writes = f'python3 -c "{SPOIL}"; touch {go}; until test -e {tmp_path}/over; do sleep 0.1; done'
    writer = await server.shell(writes, inputs={"in": ref}, link_inputs=True)
    outcome = await server.outcome(reader)
    (tmp_path / "over").touch()
    assert outcome.fault is not None and outcome.fault.name == "inputChanged" and not outcome.files
    assert "its input in was changed while the job ran" in outcome.fault.message
    assert (await server.outcome(writer)).measures.changed_inputs == ("in",)
    await done(server, await reading(server))
