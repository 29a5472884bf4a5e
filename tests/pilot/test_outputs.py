"""What jobs leave behind, when that is too much, too deep, or not what it should be."""

import asyncio
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from mendflow.core.model.faults import Category
from mendflow.core.model.jobs import Resources
from mendflow.core.model.values import VALUE_BYTES_MAX, Value
from mendflow.pilot.files.work_folder import remove_tree
from mendflow.pilot.slot.declared_outputs import find_outputs
from mendflow.pilot.slot.outputs import LINES_MAX, BadOutput, OutputNotes, parse_outputs, within_bounds
from tests.pilot.conftest import Pilot, Server
from tests.pilot.test_survival import slots_of

Hire = Callable[..., Pilot]
ONE_LOOP = pytest.mark.asyncio(loop_scope="module")


# outputs


@pytest.mark.full
async def test_very_many_outputs_are_refused_within_the_time_of_the_job(server: Server, hire: Hire) -> None:
    pilot = hire()
    line = "x" * 60
    command = f'seq 100000 | sed "s/.*/k&={line}/" > $MENDFLOW_OUTPUT'
    fault = (await server.outcome(await server.shell(command, resources=Resources(wall_ms=10_000)))).fault
    assert fault is not None and fault.name == "badOutput" and "100000 values" in fault.message
    (slot,) = slots_of(pilot)
    assert (await server.outcome(await server.shell("true"))).ok
    assert slots_of(pilot) == [slot]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a=1.10", {}),
        ("a=[1.5, 2, true, null]", {}),
        ("a=[1, [1.10]]\nb=[2]", {"a": "1.10"}),
        ('a={"v": "1.10", "w": 2.50}', {"a": "2.50"}),
    ],
)
def test_numbers_in_json_are_numbers_and_those_that_look_otherwise_are_told(text: str, told: dict[str, str]) -> None:
    # DU-1
    notes = OutputNotes()
    parse_outputs(text, notes)
    assert notes.reworded == told
    assert all("is a number" in sentence for sentence in notes.sentences())


def test_nothing_is_spilled_in_vain(tmp_path: Path) -> None:
    with pytest.raises(BadOutput, match="40000 values"):
        within_bounds({f"k{number}": "x" * 600 for number in range(40_000)}, str(tmp_path))
    assert not list(tmp_path.iterdir())


def test_values_are_spilled_only_when_their_reference_is_smaller(tmp_path: Path) -> None:
    outputs: dict[str, Value] = {f"k{number}": "x" * 400 for number in range(300)}
    kept, paths = within_bounds(outputs | {"small": "y"}, str(tmp_path))
    assert kept["small"] == "y" and 0 < len(paths) < 300
    with pytest.raises(BadOutput, match="leave them in a file"):
        within_bounds({f"k{number}": "x" * 90 for number in range(2 * VALUE_BYTES_MAX // 90)}, str(tmp_path))


@pytest.mark.full
def test_lines_that_give_values_are_bounded() -> None:
    assert parse_outputs("a=1\n" * LINES_MAX) == {"a": 1}
    with pytest.raises(BadOutput, match=f"line {LINES_MAX + 1}"):
        parse_outputs("a=1\n" * (LINES_MAX + 1))
    assert parse_outputs("a<<END\n" + "x\n" * LINES_MAX + "END")["a"].count("x") == LINES_MAX


# references


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('f={"$file":"a","bytes":"abc"}', "line 1: it has the key `$file` like a reference to a file, and is none"),
        ('f=[{"$file":"../../../../etc/hostname","bytes":12,"name":"a"}]', "line 1: `[0]` has the key `$file`"),
        (f'f={{"a":{{"$spilled":"{"ab" * 32}","bytes":9}}}}', "line 1: `a` has the key `$spilled`, which mendflow"),
        ('f={"$too-large":1}', "line 1: it has the key `$too-large`"),
    ],
)
def test_what_looks_like_a_reference_and_is_none_is_refused_with_its_line(line: str, told: str) -> None:
    with pytest.raises(BadOutput) as refusal:
        parse_outputs(line)
    assert told in str(refusal.value)


def test_a_value_that_names_files_is_not_hidden_from_the_server(tmp_path: Path) -> None:
    reference = {"$file": "ab" * 32, "bytes": 1, "name": "a"}
    with pytest.raises(BadOutput, match="`f` refers to files and is too large"):
        within_bounds({"f": [reference] * 1_000}, str(tmp_path))
    assert within_bounds({"f": reference}, str(tmp_path)) == ({"f": reference}, [])


@ONE_LOOP
async def test_an_output_that_looks_like_a_reference_fails_the_job_with_a_sentence(staffed: Server) -> None:
    command = """echo 'f={"$file":"a","bytes":"abc"}' >> $MENDFLOW_OUTPUT"""
    fault = (await staffed.outcome(await staffed.shell(command))).fault
    assert fault is not None and fault.name == "badOutput"
    assert "like a reference to a file, and is none" in fault.message


@ONE_LOOP
async def test_a_function_names_no_file_that_the_server_could_not_check(staffed: Server) -> None:
    source = (
        "def forged(d): return [{'$file': 'ab' * 32, 'bytes': 1, 'name': 'a'}] * 1000\n"
        "def spilled(d): return {'x': {'$spilled': 'ab' * 32, 'bytes': 1}}\n"
        "def same(d): return d == {'x': {'$spilled': 'ab' * 32, 'bytes': 1}}\n"
        "def many(d): return [d] * 1000\n"
        "def first(d): return d[0]\n"
        "def other(d): d[0]['$file'] = 'cd' * 32; return d[0]\n"
    )
    given = staffed.keep(b"given").as_value()
    fault = (await staffed.outcome(await staffed.call(source, "forged", given))).fault
    assert fault is not None and fault.name == "notData" and "neither was given nor made" in fault.message
    harmless = (await staffed.outcome(await staffed.call(source, "spilled", given))).outputs
    assert (await staffed.outcome(await staffed.call(source, "same", harmless))).outputs is True
    many = await staffed.outcome(await staffed.call(source, "many", given))
    assert (await staffed.outcome(await staffed.call(source, "first", many.outputs))).outputs == given
    fault = (await staffed.outcome(await staffed.call(source, "other", many.outputs))).fault
    assert fault is not None and "neither was given nor made" in fault.message


# folders

DEEP = "import os\nfor _ in range(1600): open('f', 'w').close(); os.mkdir('a' * 20); os.chdir('a' * 20)"


@pytest.mark.full
async def test_a_job_that_leaves_a_very_deep_folder_is_credited_and_its_folder_goes(
    server: Server, hire: Hire, tmp_path: Path
) -> None:
    pilot = hire()
    try:
        job = await server.shell(f'python3 -c "{DEEP}"')
        assert (await server.outcome(job)).ok and server.ledger.accepted_fences[job] == [1]
        (slot,) = slots_of(pilot)
        assert (await server.outcome(await server.shell("true"))).ok
        assert slots_of(pilot) == [slot]
        await server.until(lambda: not os.listdir(pilot.work / "attempts"), "the folder to go")
    finally:
        remove_tree(str(pilot.work / "attempts"))  # whatever happened: pytest cannot remove what is so deep


SLOW = """\
import os, time

rmdir = os.rmdir


def slowly(path, **more):
    while "/attempts/" in str(path) and not os.path.exists({go!r}):
        time.sleep(0.01)
    rmdir(path, **more)


os.rmdir = slowly
"""


async def test_a_result_is_told_before_its_folder_is_removed(
    server: Server, hire: Hire, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a disk where no folder goes until somebody allows it."""
    await asyncio.to_thread(os.mkdir, tmp_path / "site")
    (tmp_path / "site" / "sitecustomize.py").write_text(SLOW.format(go=str(tmp_path / "go")))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"), prepend=os.pathsep)
    pilot = hire()
    assert (await server.outcome(await server.shell("touch file"))).ok
    assert os.listdir(pilot.work / "attempts"), "it is still being removed"
    (tmp_path / "go").touch()
    await server.until(lambda: not os.listdir(pilot.work / "attempts"), "the folder to go")


async def test_a_job_that_puts_a_link_in_the_place_of_its_folder_gets_nothing_removed(
    server: Server, hire: Hire, tmp_path: Path
) -> None:
    pilot = hire()
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "letter").touch()
    job = await server.shell(f'here=$PWD; cd /; rmdir "$here"; ln -s {tmp_path}/theirs "$here"')
    assert (await server.outcome(job)).ok
    assert (await server.outcome(await server.shell("true"))).ok
    assert await asyncio.to_thread(pilot.end) == 0
    assert (tmp_path / "theirs" / "letter").exists()


def test_a_folder_is_removed_whatever_its_rights_and_what_cannot_be_is_left(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "a" / "b" / "c").mkdir(parents=True)
    (root / "a" / "b" / "file").touch()
    (root / "a" / "link").symlink_to("/nowhere")
    for folder in (root / "a" / "b" / "c", root / "a" / "b", root / "a", root):
        folder.chmod(0)
    remove_tree(str(root))
    assert not root.exists()
    remove_tree(str(root))


# declared outputs


@ONE_LOOP
async def test_a_promised_file_that_is_something_else_is_told_as_what_it_is(staffed: Server) -> None:
    job = await staffed.shell("mkfifo o", files={"o": "o"})
    fault = (await staffed.outcome(job)).fault
    assert fault is not None and fault.category is Category.OUTPUT and "is a named pipe" in fault.message


@pytest.mark.full
async def test_a_link_to_a_file_of_others_is_not_taken_for_the_work_of_the_job(
    server: Server, hire: Hire, tmp_path: Path
) -> None:
    hire()
    (tmp_path / "secret").write_text("theirs")
    fault = (await server.outcome(await server.shell(f"ln -s {tmp_path}/secret o", files={"o": "o"}))).fault
    assert fault is not None and f"is a link to {tmp_path}/secret, outside" in fault.message
    assert not server.ledger.files
    source = "import os\ndef f(p): os.symlink(p, 'o')"
    call = await server.call(source, "f", str(tmp_path / "secret"), files={"o": "o"})
    fault = (await server.outcome(call)).fault
    assert fault is not None and "outside of the job's folder" in fault.message


def test_what_is_wrong_with_a_promised_file_is_said(tmp_path: Path) -> None:
    folder = tmp_path / "job"
    (folder / "sub").mkdir(parents=True)
    (folder / "good").touch()
    (folder / "near").symlink_to("good")
    (folder / "nowhere").symlink_to("gone")
    (folder / "out").symlink_to(tmp_path)
    (tmp_path / "other").touch()
    (folder / "null").symlink_to("/dev/null")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(folder / "socket"))
    listener.close()
    assert find_outputs({"a": "good", "b": "near"}, str(folder)).fault is None
    for path, words in {
        "none": "is not there",
        "sub": "is a folder",
        "socket": "is a socket",
        "null": "is a device",
        "nowhere": "is a link to gone, which leads nowhere",
        "out/other": f"is a link to {tmp_path}/other, outside",
        "good/x": "cannot be read: Not a directory",
    }.items():
        fault = find_outputs({"o": path}, str(folder)).fault
        assert fault is not None and fault.message.startswith(f"the declared output o ({path}) {words}")


# results of functions


@pytest.mark.full
async def test_arguments_that_are_files_arrive_as_paths_in_the_order_of_their_list(server: Server, hire: Hire) -> None:
    hire()  # DU-3
    source = "def f(one, many, folder): return [one.read_text(), [p and p.read_text() for p in many], folder.name]"
    first, second = (server.keep(each.encode(), "out.txt") for each in ("b", "a"))
    arguments = [
        {"$path": "one", "of": first.as_value()},
        {"$path": "many", "of": [first.as_value(), None, second.as_value()]},
        {"$path": "given"},
    ]
    inputs = {"one/out.txt": first, "many/0-out.txt": first, "many/2-out.txt": second}
    outcome = await server.outcome(await server.call(source, "f", *arguments, inputs=inputs))
    assert outcome.outputs == ["b", ["b", None, "a"], "given"], outcome.fault


@pytest.mark.full
@ONE_LOOP
async def test_what_is_not_data_is_the_fault_of_the_function(staffed: Server) -> None:
    source = "import threading\ndef f(n): return {'ok': 1, 'locks': [threading.Lock()]}\ndef g(): return (1, (2,))"
    fault = (await staffed.outcome(await staffed.call(source, "f", 2))).fault
    assert fault is not None and fault.name == "notData" and "its ['locks'][0] is a _thread.lock" in fault.message
    assert "given.f returned a dict" in fault.message and "return its Path" in fault.message
    assert (await staffed.outcome(await staffed.call(source, "g"))).outputs == [1, [2]]
