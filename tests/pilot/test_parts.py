"""The pilot's small parts, each by itself."""

import asyncio
import errno
import hashlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import BinaryIO

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendflow.core.model.faults import Category
from mendflow.core.model.ids import ItemId, JobId
from mendflow.core.model.jobs import FunctionRef, JobSpec, Resources
from mendflow.core.model.sync import Capacity
from mendflow.core.model.values import VALUE_BYTES_MAX, FileRef, Value
from mendflow.pilot.agent.agent import Agent
from mendflow.pilot.agent.attempts import HeldAttempt
from mendflow.pilot.agent.http import ExchangeClient, FileClient, ServerAddress, ServerAway, ServerRefused
from mendflow.pilot.agent.prefetch import AT_HAND_MAX, slot_depth
from mendflow.pilot.environment import BadEnvironment, check
from mendflow.pilot.files.staging import FileStager, check_inside, stored_arguments
from mendflow.pilot.files.staging_faults import StagingFailed
from mendflow.pilot.files.work_folder import WorkFolder, WorkFolderTaken, attempt_name, remove_tree
from mendflow.pilot.main import main
from mendflow.pilot.options import cache_flaw, cache_options, parse
from mendflow.pilot.slot.faults import StopReason, exit_fault, start_fault, stop_fault
from mendflow.pilot.slot.lease import LeaseClock, boot_ms, margin_ms
from mendflow.pilot.slot.messages import FrameReader, frame
from mendflow.pilot.slot.outputs import OUTPUT_BYTES_MAX, BadOutput, parse_outputs, read_outputs, within_bounds
from mendflow.pilot.slot.processes import MillisecondRounder, Reaper, below_any, children, descendants, kill_tree
from tests.patience import PATIENCE_S


@given(st.lists(st.binary(max_size=50), max_size=20), st.integers(1, 17))
def test_frames_come_out_as_they_went_in_however_they_are_cut(messages: list[bytes], step: int) -> None:
    stream = b"".join(frame(message) for message in messages)
    frames = FrameReader()
    seen = [one for at in range(0, len(stream), step) for one in frames.feed(stream[at : at + step])]
    assert seen == messages


@pytest.mark.parametrize(
    ("text", "outputs"),
    [
        ("", {}),
        ('a=1\n\nb= two \nc=[1]\nd={"x": null}\ne=\n', {"a": 1, "b": " two ", "c": [1], "d": {"x": None}, "e": ""}),
        ("a=x=y\r\n", {"a": "x=y"}),
        ("a<<END\none\n  two=2\nEND\nb=true", {"a": "one\n  two=2", "b": True}),
        ('a<<END\n{"k":\n 1}\nEND\n', {"a": {"k": 1}}),
        ("n=123456789012345678901234567890", {"n": "123456789012345678901234567890"}),
        ("a=1\na=2", {"a": 2}),
    ],
)
def test_outputs_are_read(text: str, outputs: dict[str, Value]) -> None:
    assert parse_outputs(text) == outputs


DEEP = "[" * 3000 + "]" * 3000


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("x", "line 1"),
        ("a=1\n=2", "line 2"),
        ("\na<<E\nb", "line 2"),
        ("a=1\nb=[99999999999999999999999]", "line 2"),
        ('a=1\nb={"x": [{"y": 1, "y": 2}]}', "line 2: `b`: `y` is given twice in one map"),
        ('\nb<<E\n{"x": 1,\n"x": 1}\nE', "line 2: `b`: `x` is given twice in one map"),
        (f"a={DEEP}", "line 1"),
        (f"a={DEEP[-3065:3065]}", "line 1"),
    ],
)
def test_bad_outputs_name_the_line(text: str, place: str) -> None:
    with pytest.raises(BadOutput, match=place):
        parse_outputs(text)


def test_nothing_but_a_plain_file_of_bounded_size_is_read_for_outputs(tmp_path: Path) -> None:
    assert read_outputs(str(tmp_path / "none")) is None
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to("/dev/zero")
    (tmp_path / "folder").mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        for name in ("fifo", "link", "folder", "socket"):
            with pytest.raises(BadOutput, match="not a plain file"):
                read_outputs(str(tmp_path / name))
    with (tmp_path / "large").open("wb") as large:
        large.truncate(OUTPUT_BYTES_MAX + 1)
    with pytest.raises(BadOutput, match="more than"):
        read_outputs(str(tmp_path / "large"))
    (tmp_path / "plain").write_bytes(b"a=1\r\nb<<E\r\nx\r\nE\r\n")
    assert read_outputs(str(tmp_path / "plain")) == {"a": 1, "b": "x"}


@given(st.lists(st.integers(0, 5_000)))
def test_little_is_not_nothing_and_the_sum_of_many_is_right(used_us: list[int]) -> None:
    whole = MillisecondRounder()
    told = [whole.of(one) for one in used_us]
    assert not used_us or used_us[0] == 0 or told[0] > 0
    assert 0 <= sum(told) * 1000 - sum(used_us) < 1000


def test_a_peak_that_may_be_our_own_is_unknown() -> None:
    reaper = Reaper()
    reaper.peak_bytes = 1 << 20
    assert reaper.peak_of_children(seen_bytes=0) == 0 and reaper.peak_of_children(seen_bytes=5) == 5
    reaper.peak_bytes = 1 << 40
    assert reaper.peak_of_children(seen_bytes=5) == 1 << 40


def test_only_as_many_outputs_are_spilled_as_must_be(tmp_path: Path) -> None:
    big, bigger = "b" * (VALUE_BYTES_MAX // 2), "c" * VALUE_BYTES_MAX
    kept, paths = within_bounds({"a": 1, "b": big, "c": bigger}, str(tmp_path))
    assert kept["a"] == 1 and kept["b"] == big and set(kept["c"]) == {"$spilled", "bytes"} and len(paths) == 1


def test_short_jobs_are_given_by_the_handful_and_long_ones_singly() -> None:
    assert slot_depth(None) == slot_depth(1_000) == 1
    assert slot_depth(0.01) == AT_HAND_MAX
    assert 1 < slot_depth(2.0) < slot_depth(0.5)


def test_reports_are_gathered_only_while_there_is_more_work_than_the_slots_run_and_have_finished(
    tmp_path: Path,
) -> None:
    work_folder = WorkFolder(tmp_path)
    work_folder.make()
    has = Capacity(slots=2, cpus=2, memory_bytes=1 << 30, disk_bytes=1 << 30)
    agent = Agent(work_folder, "p", has, FileStager(work_folder, FileClient(ServerAddress("http://x", ""))))
    held = [HeldAttempt(JobId(f"case/{number}"), 1, Resources()) for number in range(8)]
    for one in held:
        agent.attempts.add(one)
    assert agent.is_well_supplied
    told = []
    for one in held:
        agent.attempts.mark_ended(one)
        agent.attempts.report(one, msgspec.Raw(b""))
        told.append(agent.is_well_supplied)
    assert told == [True] * 3 + [False] * 5


def test_a_lease_is_over_before_it_ends_and_a_late_answer_shortens_nothing(tmp_path: Path) -> None:  # JS-7
    mine, theirs = LeaseClock(tmp_path / "lease"), LeaseClock(tmp_path / "lease")
    assert theirs.is_over(boot_ms()), "before the first answer there is no lease"
    mine.renew(sent_at=1_000, lease_ms=10_000)
    assert theirs.stop_at == 1_000 + 10_000 - 1_000
    mine.renew(sent_at=500, lease_ms=10_000)
    assert theirs.stop_at == 10_000 and not theirs.is_over(9_999) and theirs.is_over(10_000)
    mine.clear()
    assert theirs.is_over(1)


@given(st.integers(1, 10**9))
def test_the_margin_is_never_the_whole_lease(lease_ms: int) -> None:
    assert 0 <= margin_ms(lease_ms) <= lease_ms // 3


def test_a_folder_has_one_agent_at_a_time(tmp_path: Path) -> None:
    work_folder = WorkFolder(tmp_path / "deep" / "work")
    work_folder.make()
    lock = work_folder.lock()
    with pytest.raises(WorkFolderTaken, match=f"process {os.getpid()}"):
        work_folder.lock()
    os.close(lock)
    os.close(work_folder.lock())


def test_an_identity_is_kept_on_its_host_and_not_taken_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work_folder = WorkFolder(tmp_path)
    work_folder.make()
    first, second = work_folder.identify(), work_folder.identify()
    assert first.pilot == second.pilot and second.starts == first.starts + 1
    monkeypatch.setattr(socket, "gethostname", lambda: "elsewhere")
    assert work_folder.identify().pilot != first.pilot


def test_a_new_pilot_is_called_after_the_name_that_its_machine_was_given(tmp_path: Path) -> None:
    work_folder = WorkFolder(tmp_path)
    work_folder.make()
    first = work_folder.identify("node 1")
    assert first.pilot.startswith("node-1-")
    assert work_folder.identify("node2").pilot == first.pilot, "its jobs know it by that name"


def test_a_result_that_is_not_whole_never_was(tmp_path: Path) -> None:
    work_folder = WorkFolder(tmp_path)
    work_folder.make()
    work_folder.result("case/1", 2).write_bytes(b"\x97half")
    assert work_folder.unjudged_results() == [] and not list(work_folder.results.iterdir())


def test_names_of_attempts_are_harmless() -> None:
    assert attempt_name("align-7f3k/12", 3) == "align-7f3k~12.3"
    assert "/" not in attempt_name("../../etc/passwd", 1)


def test_folders_are_removed_whatever_is_in_them(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "keep").touch()
    folder = tmp_path / "folder"
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "a" / "file").touch()
    (folder / "link").symlink_to(outside)
    (folder / "a").chmod(0)
    remove_tree(str(folder))
    assert not folder.exists() and (outside / "keep").exists()
    remove_tree(str(folder))


def test_paths_that_leave_the_folder_are_refused() -> None:
    assert check_inside("a/b.txt") == "a/b.txt"
    for path in ("/a", "../a", "a/../../b", "", "a\0b"):
        with pytest.raises(StagingFailed):
            check_inside(path)


def test_spilled_values_are_found_at_any_depth() -> None:
    value = {"a": [{"$spilled": "x", "bytes": 1}, {"b": {"$spilled": "y"}}], "c": "$spilled"}
    assert [each.ref.sha256 for each in stored_arguments(value)] == ["x", "y"]


class Shelf(FileClient):
    """Stored files without a server."""

    def __init__(self, files: dict[str, bytes]) -> None:
        super().__init__(ServerAddress("http://127.0.0.1:1", ""))
        self.files = files
        self.asked: list[str] = []

    def get(self, sha256: str, **_: float) -> Iterator[bytes]:
        self.asked.append(sha256)
        if sha256 not in self.files:
            raise ServerRefused(404, "no such file")
        yield self.files[sha256]

    def put(self, sha256: str, name: str, content: BinaryIO, size: int) -> None:
        self.files[sha256] = content.read()


def kept(content: bytes) -> FileRef:
    return FileRef(sha256=hashlib.sha256(content).hexdigest(), bytes=len(content), name="file")


def stage(tmp_path: Path, *contents: bytes) -> tuple[FileStager, Shelf]:
    work_folder = WorkFolder(tmp_path / "work")
    work_folder.make()
    shelf = Shelf({kept(content).sha256: content for content in contents})
    return FileStager(work_folder, shelf), shelf


def test_a_file_is_fetched_once_and_a_damaged_one_never_used(tmp_path: Path) -> None:  # FM-6
    staging, shelf = stage(tmp_path, b"good")
    spec = JobSpec(item=ItemId("i"), command="x", inputs={"a": kept(b"good"), "deep/b": kept(b"good")})
    staging.stage_in(spec, str(tmp_path / "one"))
    assert (tmp_path / "one" / "deep" / "b").read_bytes() == b"good" and len(shelf.asked) == 1
    shelf.files[kept(b"other").sha256] = b"not the same"
    with pytest.raises(StagingFailed, match="damaged") as failure:
        staging.stage_in(JobSpec(item=ItemId("i"), command="x", inputs={"a": kept(b"other")}), str(tmp_path / "two"))
    assert failure.value.fault.category is Category.DATA and not (tmp_path / "two").exists()


def test_a_full_disk_while_staging_is_a_fault_of_the_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    staging, _ = stage(tmp_path, b"good")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(shutil, "copyfile", full)
    with pytest.raises(StagingFailed) as failure:
        staging.stage_in(JobSpec(item=ItemId("i"), command="x", inputs={"a": kept(b"good")}), str(tmp_path / "one"))
    assert failure.value.fault.infrastructure and "disk is full" in failure.value.fault.message


def test_source_is_taken_from_the_folder_only_while_it_is_the_deployed_one(tmp_path: Path) -> None:
    staging, shelf = stage(tmp_path, b"x = 1")
    (tmp_path / "m.py").write_bytes(b"x = 1")
    function = FunctionRef(module="m", name="f", code=kept(b"x = 1"), folder=str(tmp_path))
    assert staging.local_code(function) is None
    assert staging.stage_code(function) == str(tmp_path) == staging.local_code(function)
    (tmp_path / "m.py").write_bytes(b"x = 2")
    assert staging.local_code(function) is None
    folder = staging.stage_code(function)
    assert (Path(folder) / "m.py").read_bytes() == b"x = 1" and len(shelf.asked) == 1
    assert staging.local_code(function) == folder


@pytest.mark.parametrize(
    ("status", "printed", "told"),
    [
        (3 << 8, "reading\nProcessing 100 %\n", "it ended with exit code 3; its last line: Processing 100 %"),
        (3 << 8, "", "it ended with exit code 3"),
        (3 << 8, "the quota is exceeded\n", "the quota is exceeded (exit code 3)"),
        (signal.SIGSEGV, "row 7\n", "it was ended by signal 11 (SIGSEGV); its last line: row 7"),
    ],
)
def test_ordinary_output_is_not_told_as_an_error(tmp_path: Path, status: int, printed: str, told: str) -> None:  # DU-4
    fault = exit_fault(status, str(tmp_path / "a"), printed=printed)
    assert fault is not None and fault.message == told


def test_a_failure_on_a_full_disk_is_laid_to_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    status = 1 << 8
    fault = exit_fault(status, str(tmp_path / "a"))
    assert fault is not None and fault.category is Category.JOB
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=0))
    fault = exit_fault(status, str(tmp_path / "a"))
    assert fault is not None and fault.infrastructure and "disk is full" in fault.message
    assert exit_fault(0, str(tmp_path / "a")) is None


def test_every_end_has_a_sentence_and_only_the_places_own_are_infrastructure() -> None:
    faults = {end: stop_fault(end, wall_ms=1_500, memory_bytes=2 * 10**6, peak_bytes=3_100_000) for end in StopReason}
    assert {end for end, fault in faults.items() if fault.infrastructure} == {
        StopReason.LEASE,
        StopReason.KILLED,
        StopReason.LEFT,
    }
    assert (
        "1.5 s" in faults[StopReason.TIME].message and "3.1 MB, more than the 2 MB" in faults[StopReason.MEMORY].message
    )
    assert start_fault(OSError(errno.E2BIG, "too long"), "/").category is Category.INPUT
    assert start_fault(OSError(errno.EAGAIN, "no more processes"), "/").infrastructure


def test_a_bad_environment_is_told_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check(tmp_path / "fine")
    (tmp_path / "file").touch()
    with pytest.raises(BadEnvironment, match="choose another"):
        check(tmp_path / "file" / "below")
    disk = {"f_flag": 0, "f_files": 100, "f_favail": 50, "f_bavail": 1 << 20, "f_frsize": 4096}
    for worse, advice in (
        ({"f_bavail": 256}, "free at least"),
        ({"f_favail": 0}, "remove some"),
        ({"f_flag": os.ST_RDONLY}, "make it writable"),
    ):
        monkeypatch.setattr(os, "statvfs", lambda _, found=disk | worse: SimpleNamespace(**found))
        with pytest.raises(BadEnvironment, match=f"{advice}.*, or choose another"):
            check(tmp_path)


def test_options_are_read_and_a_bad_address_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MENDFLOW_TOKEN", "sesame")
    options = parse(["--server", "http://h:1", "--work", str(tmp_path), "--jobs", "3", "--memory-bytes", "5"])
    assert (options.slots, options.memory_bytes, options.cpus, options.token) == (3, 5, None, "sesame")
    for bad in ("ftp://nowhere", "foo", "http://"):
        assert main(["--server", bad, "--work", str(tmp_path)]) == 2
    assert ServerAddress("localhost:8765", "").port == 8765


def test_a_cache_that_cannot_keep_anything_is_told_of() -> None:
    assert "keeps no files" in cache_flaw(cache_options(space_bytes=1_000_000, threshold_bytes=2_000_000))
    assert not cache_flaw(cache_options(space_bytes=0, threshold_bytes=0)), "that was asked for"
    assert not cache_flaw(cache_options()) and not cache_flaw(cache_options(space_bytes=2, threshold_bytes=1))


def test_a_tree_of_processes_is_found_and_killed() -> None:
    command = "import os, time; os.fork(); os.fork(); print(1, flush=True); time.sleep(600)"
    root = subprocess.Popen([sys.executable, "-c", command], stdout=subprocess.PIPE)
    assert root.stdout is not None
    for _ in range(4):
        root.stdout.readline()
    below = descendants(root.pid)
    assert len(below) == 3 and root.pid in children(os.getpid())
    assert all(below_any(pid, {root.pid}) for pid in below) and not below_any(os.getpid(), {root.pid})
    kill_tree(root.pid)
    assert root.wait(PATIENCE_S) == -signal.SIGKILL
    give_up_at = time.monotonic() + PATIENCE_S
    while any(_alive(pid) for pid in below):
        assert time.monotonic() < give_up_at


def _alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


async def answering(*answers: bytes) -> tuple[ExchangeClient, asyncio.Server]:
    """A server that gives the same bytes to whatever is asked, in pieces."""
    left = list(answers)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while left:
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(int(line[15:]) for line in head.split(b"\r\n") if line.startswith(b"Content-Length"))
            await reader.readexactly(length)
            answer = left.pop(0)
            for at in range(0, len(answer), 7):
                writer.write(answer[at : at + 7])
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    return ExchangeClient(ServerAddress(f"http://127.0.0.1:{port}", "sesame"), "/x"), server


async def test_answers_are_read_whole_chunked_or_not() -> None:
    exchanges, server = await answering(
        b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    )
    async with server:
        assert [await exchanges.post(b"x", 5) for _ in range(3)] == [b"hello", b"abc0123456789", b""]
        exchanges.close()


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (b"HTTP/1.1 401 No\r\nContent-Length: 2\r\n\r\nno", ServerRefused),
        (b"HTTP/1.1 503 Later\r\nContent-Length: 0\r\n\r\n", ServerAway),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\ncut short", ServerAway),
        (b"SSH-2.0-surprise\r\n\r\n", ServerAway),
        (b"", ServerAway),
    ],
)
async def test_answers_that_are_none_are_told_apart(answer: bytes, error: type[Exception]) -> None:
    exchanges, server = await answering(answer)
    async with server:
        with pytest.raises(error):
            await exchanges.post(b"x", 5)
    with pytest.raises(ServerAway):
        await exchanges.post(b"x", 5)
