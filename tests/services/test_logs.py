"""The log of a job, from any byte on: of one that runs, of each attempt, and of what is longer than its bound."""

import asyncio
import gzip
import itertools
import threading
import time
import zlib
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any, cast

import msgspec
import pytest

from mendflow.core.model.errors import NotFound, TooLarge
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.flow import Flow, JobActivity
from mendflow.core.model.ids import FlowName
from mendflow.core.model.jobs import Measurements, Outcome, StoredLog
from mendflow.core.model.sync import AttemptStatus, LogPart, SyncRequest
from mendflow.core.model.text_masks import TextMask
from mendflow.core.model.views import LogView
from mendflow.services.api import job_logs
from mendflow.services.api.archive.kinds import files_in
from mendflow.services.api.domain import Domain
from mendflow.services.api.job_logs import GZIP, OPEN_MAX, PART_BYTES, StoredLogReader
from mendflow.services.base.contracts import FileStore
from mendflow.services.base.reading_cost import tell_cost_of_reading
from mendflow.services.runtime.server import Server
from tests.services.conftest import CAPACITY, HandPilot

ONE = Flow(name=FlowName("f"), body=JobActivity(name="a", command="true", retries=1))


async def pieces(content: bytes) -> AsyncIterator[bytes]:
    yield content


async def stored(server: Server, printed: bytes, *, gap: tuple[int, int] = (0, 0)) -> StoredLog:
    """A log as a pilot stores it, with the bytes of the gap left out."""
    start, end = gap
    packed = gzip.compress(printed[:start] + printed[end:] if end else printed, mtime=0)
    file = await server.file_store.keep("log.gz", pieces(packed))
    return StoredLog(file=file, bytes=len(printed), left_out_at=start, left_out_bytes=end - start)


def failed(tail: str, log: StoredLog | None = None, folder: str = "") -> Outcome:
    fault = Fault(name="exitCode", category=Category.JOB, message="it ended with exit code 1", log_tail=tail)
    return Outcome(fault=fault, log_tail=tail, log=log, folder=folder)


async def started(domain: Domain, pilot: HandPilot) -> str:
    await domain.deploy(ONE)
    case = (await domain.start("f", {}, who="me")).id
    await pilot.sync(want=1)
    return f"{case}/{pilot.held[0].job.rpartition('/')[2]}"


async def whole(domain: Domain, job: str, attempt: int = 0) -> tuple[str, list[LogView]]:
    parts = [await domain.log(job, attempt=attempt)]
    while parts[-1].next < parts[-1].size:
        parts.append(await domain.log(job, attempt=attempt, offset=parts[-1].next))
    return "".join(part.text for part in parts), parts


async def test_a_long_log_is_read_in_parts_that_cut_no_character(
    domain: Domain, server: Server, pilot: HandPilot
) -> None:  # DU-4
    job = await started(domain, pilot)
    printed = "".join(f"{number:07d} naïve café ☕\n" for number in range(60_000))
    await pilot.sync(a=Outcome(log_tail=printed[-100:], log=await stored(server, printed.encode())))
    text, parts = await whole(domain, job)
    assert text == printed and len(parts) >= len(printed.encode()) // PART_BYTES
    assert all(part.offset == before.next for before, part in itertools.pairwise(parts))
    place = printed.encode().index(b"0040000")
    assert (await domain.log(job, offset=place)).text.startswith("0040000 naïve")
    assert parts[-1].over and parts[-1].job_over


async def read_all(reader: StoredLogReader, log: StoredLog) -> tuple[bytes, list[int]]:
    found, offset, starts = b"", 0, []
    while offset < log.bytes:
        start, data = await reader.read(log, offset, TextMask())
        assert data, f"nothing was read at {offset} of {log.bytes}"
        found, offset = found + data, start + len(data)
        starts.append(start)
    return found, starts


class OpenedFiles:
    """The stored files of a server; counts how often one was opened, and which are open."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.opened = self.open = 0

    async def read(self, sha256: str) -> AsyncGenerator[bytes, None]:
        self.opened += 1
        self.open += 1
        try:
            async for chunk in self._server.file_store.read(sha256):
                for start in range(0, len(chunk), 1_000):
                    yield chunk[start : start + 1_000]
        finally:
            self.open -= 1


async def test_a_long_log_is_unpacked_once_for_who_reads_on_and_its_file_is_closed_at_the_end(
    server: Server,
) -> None:  # DU-4
    printed = ("日本語の記録" * 100 + "\n") * 2_000
    log = await stored(server, printed.encode())
    files = OpenedFiles(server)
    reader = StoredLogReader(cast(FileStore, files))
    found, starts = await read_all(reader, log)
    assert found.decode() == printed and len(starts) == 4
    assert (files.opened, files.open) == (1, 0)


async def test_logs_that_nobody_reads_on_in_are_closed(server: Server) -> None:
    log = await stored(server, b"x" * (3 * PART_BYTES))
    files = OpenedFiles(server)
    reader = StoredLogReader(cast(FileStore, files))
    for offset in range(2 * OPEN_MAX):
        await reader.read(log, offset, TextMask())
    assert files.open == OPEN_MAX


@pytest.mark.parametrize("cut", [(PART_BYTES - 1, PART_BYTES + 5), (4, 3_000), (3 * PART_BYTES - 2, 3 * PART_BYTES)])
async def test_a_character_that_the_gap_of_a_log_cuts_does_not_stop_who_reads_it(
    domain: Domain, server: Server, pilot: HandPilot, cut: tuple[int, int]
) -> None:  # DU-4
    job = await started(domain, pilot)
    printed = ("字" * PART_BYTES).encode()
    await pilot.sync(a=Outcome(log=await stored(server, printed, gap=cut)))
    parts = [await domain.log(job)]
    while parts[-1].next < parts[-1].size:
        parts.append(await domain.log(job, offset=parts[-1].next))
        assert parts[-1].next > parts[-2].next, "each part goes on"
    text = "".join(part.text for part in parts)
    assert text.count("字") == cut[0] // 3 + (len(printed) - cut[1]) // 3


async def test_what_a_log_left_out_is_passed_over_and_told_by_the_offset(
    domain: Domain, server: Server, pilot: HandPilot
) -> None:  # DU-4
    job = await started(domain, pilot)
    printed = b"".join(b"%09d\n" % number for number in range(200_000))
    await pilot.sync(a=Outcome(log=await stored(server, printed, gap=(500_000, 1_500_000))))
    text, parts = await whole(domain, job)
    assert text.encode() == printed[:500_000] + printed[1_500_000:]
    gaps = [part.offset - before.next for before, part in itertools.pairwise(parts)]
    assert [gap for gap in gaps if gap] == [1_000_000] and parts[-1].size == 2_000_000
    assert (await domain.log(job, offset=700_000)).offset == 1_500_000


async def test_each_attempt_has_its_own_log_and_says_where_its_folder_is(
    domain: Domain, server: Server, pilot: HandPilot
) -> None:  # DU-4
    job = await started(domain, pilot)
    first = b"first attempt\n" * 5_000
    await pilot.sync(a=failed("first attempt\n", await stored(server, first), "/pilot/attempts/x.1"))
    await pilot.sync(want=1, wait_ms=50)
    await pilot.sync(a=failed("second attempt\n"))
    assert (await whole(domain, job, 1))[0].encode() == first
    assert (await whole(domain, job))[0] == (await whole(domain, job, 2))[0] == "second attempt\n"
    one = await domain.log(job, attempt=1)
    assert (one.folder, one.host, one.over) == ("/pilot/attempts/x.1", "here", True)
    assert "/pilot/attempts/x.1 on here" in " ".join((await domain.why(job)).facts)
    with pytest.raises(NotFound, match="has no attempt 3; there are 1, 2"):
        await domain.log(job, attempt=3)


async def answer_log(
    domain: Domain, pilot: HandPilot, data: bytes, *, size: int, asked: int = 7, offset: int = 7
) -> None:
    """Let the pilot tell these bytes, which were printed from the seventh on unless another place is given."""
    pilot.serial += 1
    held = pilot.held[0]
    await domain.sync(
        SyncRequest(
            pilot=pilot.name,
            serial=pilot.serial,
            heard=pilot.serial - 1,
            host="here",
            capacity=CAPACITY,
            want=0,
            running=[AttemptStatus(held.job, held.fence, "running", Measurements())],
            logs=[LogPart(held.job, held.fence, asked, offset, data, size)],
        )
    )


async def test_the_log_of_a_job_that_runs_is_asked_of_its_pilot(domain: Domain, pilot: HandPilot) -> None:  # DU-4
    job = await started(domain, pilot)
    reading = asyncio.create_task(domain.log(job, offset=7))
    other = asyncio.create_task(domain.log(job, offset=7))
    answer = await pilot.sync(wait_ms=2_000)
    (wanted,) = answer.logs
    assert (wanted.job, wanted.fence, wanted.offset) == (job, 1, 7), "those who want the same are one question"
    await answer_log(domain, pilot, "héllo".encode()[:2], size=9)
    view = await reading
    assert (await other) == view
    assert (view.text, view.offset, view.next, view.size, view.over) == ("h", 7, 8, 9, False)


@pytest.mark.parametrize(("size", "told"), [(90, ("\N{REPLACEMENT CHARACTER}", 9)), (9, ("", 7))])
async def test_the_beginning_of_a_character_is_told_only_where_its_rest_was_left_out(
    domain: Domain, pilot: HandPilot, size: int, told: tuple[str, int]
) -> None:  # DU-4
    job = await started(domain, pilot)
    reading = asyncio.create_task(domain.log(job, offset=7))
    await pilot.sync(wait_ms=2_000)
    await answer_log(domain, pilot, "字".encode()[:2], size=size)
    view = await reading
    assert (view.text, view.next) == told


async def test_who_reads_when_the_attempt_ends_reads_on_from_what_was_stored(
    domain: Domain, server: Server, pilot: HandPilot
) -> None:  # DU-4
    job = await started(domain, pilot)
    reading = asyncio.create_task(domain.log(job))
    assert (await pilot.sync(wait_ms=2_000)).logs
    printed = b"said\n" * 10_000
    await pilot.sync(a=Outcome(log_tail="said\n", log=await stored(server, printed)))
    assert (await reading).silent
    assert (await whole(domain, job))[0].encode() == printed


async def test_a_pilot_cannot_answer_for_an_attempt_of_another(
    domain: Domain, pilot: HandPilot, another_pilot: Any
) -> None:
    job = await started(domain, pilot)
    reading = asyncio.create_task(domain.log(job))
    (wanted,) = (await pilot.sync(wait_ms=2_000)).logs
    request = SyncRequest(
        pilot=another_pilot("p-2").name,
        serial=1,
        host="there",
        capacity=CAPACITY,
        want=0,
        logs=[LogPart(wanted.job, wanted.fence, 0, 0, b"lies", 4)],
    )
    await domain.sync(request)
    assert not reading.done()
    await pilot.sync(a=Outcome(log_tail="truth\n"))
    assert (await reading).text != "lies" and (await domain.log(job)).text == "truth\n"


async def test_an_archive_of_the_case_contains_its_logs(domain: Domain, server: Server, pilot: HandPilot) -> None:
    job = await started(domain, pilot)
    log = await stored(server, b"said\n" * 10_000)
    await pilot.sync(a=failed("said\n", log))
    document = msgspec.json.encode(await domain.job(job))
    assert log.file.sha256 in files_in(document), "exports take along what documents refer to"


async def test_a_token_of_the_server_that_a_job_prints_is_masked_wherever_its_log_is_shown(
    domain: Domain, server: Server, pilot: HandPilot
) -> None:  # DU-4
    token = "local-pilot-token-0123456789"
    server.hidden.add(token)
    job = await started(domain, pilot)
    printed = b"x" * (PART_BYTES - 10) + f"{token}\nthe end of {token}\n{token[:9]}".encode()
    tail = f"the end of {token}\n"
    fault = Fault(name="exitCode", category=Category.JOB, message=f"printed {token}", log_tail=tail)
    await pilot.sync(a=Outcome(fault=fault, log_tail=tail, log=await stored(server, printed)))
    text, _ = await whole(domain, job, 1)
    masked = "*" * len(token)
    assert text == printed.decode().replace(token, masked), "also where a part ends in it; what is like it stays"
    (item,) = await domain.items(job.partition("/")[0])
    told = msgspec.json.encode([item, await domain.job(job), await domain.why(job)]).decode()
    assert token not in told and f"the end of {masked}" in told


SECRET, LIKE_ITS_END = "SECRETVALUE-0009", "9KschU8lrICj356nNJhE"


async def read_live(
    domain: Domain, pilot: HandPilot, job: str, printed: bytes, offset: int, gap: tuple[int, int] = (0, 0)
) -> LogView:
    """What is shown from `offset` on of the log of a job that runs and has printed this much."""
    reading = asyncio.create_task(domain.log(job, offset=offset))
    while not reading.done():
        for wanted in (await pilot.sync(wait_ms=100)).logs:
            start = gap[1] if gap[0] <= wanted.offset < gap[1] else wanted.offset
            data = printed[start : gap[0] if start < gap[0] else None]
            await answer_log(domain, pilot, data, size=len(printed), asked=wanted.offset, offset=start)
    return await reading


async def test_a_log_that_ends_with_a_hidden_text_shows_none_of_it_if_another_begins_with_its_last_letter(
    domain: Domain, server: Server, pilot: HandPilot
) -> None:  # DU-6
    server.hidden.add(SECRET, LIKE_ITS_END)
    job, printed = await started(domain, pilot), f"LEAK {SECRET}".encode()
    view = await read_live(domain, pilot, job, printed, 0)
    assert (view.text, view.next) == ("LEAK " + "*" * len(SECRET), len(printed))


@pytest.mark.parametrize("gap", [(0, 0), (3, 4), (3, 20), (60, 70)])
async def test_who_reads_from_within_a_hidden_text_sees_none_of_it(
    domain: Domain, server: Server, pilot: HandPilot, gap: tuple[int, int]
) -> None:  # DU-6
    server.hidden.add(SECRET, LIKE_ITS_END)
    job = await started(domain, pilot)
    printed = f"{'.' * 25}LEAK {SECRET} and more {'-' * 20} and {SECRET} the end".encode()
    shown = printed.replace(SECRET.encode(), b"*" * len(SECRET))
    places = [30, 31, 38, 45, 46, len(printed) - 9]
    views = [await read_live(domain, pilot, job, printed, place, gap) for place in places]
    await pilot.sync(a=Outcome(log=await stored(server, printed, gap=gap)))
    for place, live in zip(places, views, strict=True):
        over = await domain.log(job, offset=place)
        rest = shown[place : gap[0] if place < gap[0] else None].decode()
        assert (live.offset, live.text) == (over.offset, over.text) == (place, rest)
        assert live.next == over.next == place + len(rest)
    inside = await domain.log(job, offset=gap[0])
    assert inside.offset == gap[1] and inside.text == shown[gap[1] : None].decode()


async def test_the_beginning_of_a_hidden_text_whose_rest_was_left_out_is_told_as_stars(
    domain: Domain, server: Server, pilot: HandPilot
) -> None:  # DU-6
    server.hidden.add(SECRET)
    job, printed, gap = await started(domain, pilot), f"LEAK {SECRET} the end".encode(), (19, 24)
    texts = [(await read_live(domain, pilot, job, printed, place, gap)).text for place in (0, 5, 8)]
    assert texts == ["LEAK ", "*" * 14, "*" * 11]
    await pilot.sync(a=Outcome(log=await stored(server, printed, gap=gap)))
    assert (await whole(domain, job))[0] == "LEAK " + "*" * 14 + "e end"


async def test_a_stored_log_whose_part_ends_with_a_hidden_text_shows_none_of_it(
    domain: Domain, server: Server, pilot: HandPilot
) -> None:  # DU-6
    server.hidden.add(SECRET, LIKE_ITS_END)
    job = await started(domain, pilot)
    printed = "x" * (PART_BYTES - len(SECRET)) + SECRET + "\nand more\n" * 100
    await pilot.sync(a=Outcome(log=await stored(server, printed.encode())))
    text, _ = await whole(domain, job)
    assert text == printed.replace(SECRET, "*" * len(SECRET))


async def test_bytes_that_are_no_text_are_given_as_they_were_printed(
    domain: Domain, server: Server, pilot: HandPilot
) -> None:  # DU-4
    job = await started(domain, pilot)
    printed = b"caf\xe9 \xff\n"
    await pilot.sync(a=Outcome(log_tail=printed.decode(errors="replace"), log=await stored(server, printed)))
    part = await domain.log(job)
    assert (part.text, part.data) == ("caf\ufffd \ufffd\n", printed)
    assert msgspec.json.decode(msgspec.json.encode(part), type=LogView).data == printed


async def test_a_token_of_a_pilot_is_masked_in_outputs_too(
    domain: Domain, server: Server, pilot: HandPilot
) -> None:  # DU-4
    server.hidden.add("pilot-token-0123456789", "pilot-token-0123456789")
    job = await started(domain, pilot)
    await pilot.sync(a=Outcome(outputs={"said": ["it is pilot-token-0123456789", 1.5], "n": 3}))
    outcome = (await domain.job(job)).outcome
    assert outcome is not None and outcome.outputs == {"said": ["it is " + "*" * 22, 1.5], "n": 3}


def bomb(mebibytes: int) -> bytes:
    """A log of zeros, packed: a thousandth of what it unpacks to."""
    packer = zlib.compressobj(9, zlib.DEFLATED, GZIP)
    piece = bytes(1 << 20)
    return b"".join([*(packer.compress(piece) for _ in range(mebibytes)), packer.flush()])


async def test_the_server_answers_others_while_a_log_is_unpacked_that_grows_a_thousandfold(server: Server) -> None:
    size = 600 << 20
    file = await server.file_store.keep("log.gz", pieces(bomb(size >> 20)))
    log = StoredLog(file=file, bytes=size)
    costs: list[float] = []
    before = tell_cost_of_reading(costs.append)
    reading = asyncio.create_task(StoredLogReader(server.file_store).read(log, size - 10, TextMask()))
    tell_cost_of_reading(before)
    longest_s = 0.0
    while not reading.done():
        begun = time.thread_time()  # of this thread: the machine may be busy with others
        await asyncio.sleep(0)
        longest_s = max(longest_s, time.thread_time() - begun)
    assert (await reading) == (size - 10, bytes(10))
    assert longest_s < 0.1
    assert sum(costs) > 0.05, "whoever reads it pays"


async def test_one_request_unpacks_a_bounded_part_of_a_log(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_logs, "SKIPPED_BYTES_MAX", 2 * PART_BYTES)
    size = 5 * PART_BYTES
    log = StoredLog(file=await server.file_store.keep("log.gz", pieces(bomb(size >> 20))), bytes=size)
    reader = StoredLogReader(server.file_store)
    with pytest.raises(TooLarge, match="read on from there"):
        await reader.read(log, 2 * PART_BYTES + 1, TextMask())
    assert (await read_all(reader, log))[0] == bytes(size), "who reads on reads it all"


async def test_the_server_answers_others_while_a_log_is_masked(server: Server) -> None:
    printed = b"".join(b"%032x\n" % number for number in range(2 * PART_BYTES // 33))
    log, threads = await stored(server, printed), set[int]()

    class Noting(TextMask):
        def mask_bytes(self, data: bytes) -> bytes:
            threads.add(threading.get_ident())
            return super().mask_bytes(data)

    reader, offset = StoredLogReader(server.file_store), 0
    while offset < log.bytes:
        offset, data = await reader.read(log, offset, Noting(["0" * 29 + "abc"]))
        offset += len(data)
    assert threads and threading.get_ident() not in threads


@pytest.mark.parametrize(
    ("gap", "third_end"),
    [((0, 0), 3 * PART_BYTES), ((PART_BYTES + 700, PART_BYTES + 900), 2 * PART_BYTES + 900)],
    ids=["whole", "gap"],
)
async def test_who_reads_a_log_on_reads_it_on_when_more_is_masked_by_then(
    server: Server, monkeypatch: pytest.MonkeyPatch, gap: tuple[int, int], third_end: int
) -> None:  # DU-4, DU-6
    monkeypatch.setattr(job_logs, "SKIPPED_BYTES_MAX", PART_BYTES)
    secret = "".join(f"{number:04}" for number in range(180))
    printed = b"x" * (third_end - 300) + secret.encode() + b"y" * PART_BYTES
    log, files = await stored(server, printed, gap=gap), OpenedFiles(server)
    reader, found, offset = StoredLogReader(cast(FileStore, files)), b"", 0
    masks: list[list[str]] = [[], ["short one"], ["a longer one"], [secret], [secret], []]
    while offset < log.bytes:
        offset, data = await reader.read(log, offset, TextMask(masks.pop(0)))
        found, offset = found + data, offset + len(data)
    assert files.opened == 1
    assert found.endswith(secret[:300].encode() + b"*" * 420 + b"y" * PART_BYTES), "what was shown before it was known"
    assert len(found) == len(printed) - (gap[1] - gap[0])


@pytest.mark.parametrize(
    "content", [b"this is no gzip", gzip.compress(b"short", mtime=0), bomb(1)[:20]], ids=["none", "short", "cut"]
)
async def test_a_stored_log_that_is_not_what_its_pilot_said_is_told_by_its_end(
    domain: Domain, server: Server, pilot: HandPilot, content: bytes
) -> None:
    job = await started(domain, pilot)
    file = await server.file_store.keep("log.gz", pieces(content))
    await pilot.sync(a=Outcome(log_tail="the end\n", log=StoredLog(file=file, bytes=1 << 40)))
    text, parts = await whole(domain, job)
    assert text.endswith("nd\n") and parts[-1].next == parts[-1].size
    assert (await domain.log(job, offset=1 << 20)).text == ""
