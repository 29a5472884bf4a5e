"""Jobs that run to their end, each in its own folder, with what it needs and what it leaves."""

import json
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import msgspec
import pytest

from mendflow.core.model.faults import Category
from mendflow.core.model.ids import ItemId
from mendflow.core.model.jobs import FunctionRef, JobSpec, Limits
from mendflow.core.model.values import VALUE_BYTES_MAX
from tests.pilot.conftest import Pilot, Server

Hire = Callable[..., Pilot]
ONE_LOOP = pytest.mark.asyncio(loop_scope="module")


@ONE_LOOP
async def test_a_command_runs_and_is_reported(staffed: Server) -> None:
    outcome = await staffed.outcome(await staffed.shell("echo hello; echo oops >&2"))
    assert outcome.ok and outcome.exit_code == 0
    assert outcome.log_tail == "hello\noops\n" and outcome.measures.printed_bytes == 11
    assert outcome.measures.cpu_ms > 0 and outcome.measures.ended_at >= outcome.measures.started_at > 0


@ONE_LOOP
async def test_a_command_knows_who_it_is_and_leaves_outputs(staffed: Server) -> None:
    command = """
        echo "who=$MENDFLOW_JOB $MENDFLOW_CASE $MENDFLOW_ITEM $COLOUR" >> $MENDFLOW_OUTPUT
        echo "try=$MENDFLOW_ATTEMPT $MENDFLOW_FENCE" >> $MENDFLOW_OUTPUT
        echo 'list=[1, "b"]' >> $MENDFLOW_OUTPUT
        printf 'text<<END\\none\\ntwo\\nEND\\n' >> $MENDFLOW_OUTPUT
    """
    job = await staffed.shell(command, env={"COLOUR": "blue"})
    outcome = await staffed.outcome(job)
    assert outcome.outputs == {"who": f"{job} case-1 item blue", "try": "1 1", "list": [1, "b"], "text": "one\ntwo"}


@pytest.mark.full
async def test_a_job_that_came_back_unbegun_begins_as_its_first_attempt(server: Server, hire: Hire) -> None:
    """The fence has counted that grant all the same, and a job that must know who it is can have it."""
    source = """
        import os

        def told():
            return {"who": f"{os.environ['MENDFLOW_ATTEMPT']} {os.environ['MENDFLOW_FENCE']}"}
    """
    command = await server.shell('echo "who=$MENDFLOW_ATTEMPT $MENDFLOW_FENCE" >> $MENDFLOW_OUTPUT')
    call = await server.call(dedent(source), "told")
    for job in (command, call):
        server.ledger.fences[job], server.ledger.numbers[job] = 1, 1
    hire()
    for job in (command, call):
        assert (await server.outcome(job)).outputs == {"who": "1 2"}


@ONE_LOOP
async def test_an_output_file_that_cannot_be_read_is_a_fault_with_the_line(staffed: Server) -> None:
    fault = (await staffed.outcome(await staffed.shell('printf "a=1\\nnonsense\\n" > $MENDFLOW_OUTPUT'))).fault
    assert fault is not None and fault.category is Category.OUTPUT and "line 2" in fault.message


async def test_whatever_stands_for_the_output_file_is_the_jobs_own_fault_and_the_slot_lives(
    server: Server, hire: Hire
) -> None:
    pilot = hire("--keep-failed-max", "0")
    commands = [
        "mkfifo $MENDFLOW_OUTPUT",
        "ln -s /dev/zero $MENDFLOW_OUTPUT",
        "mkdir -p $MENDFLOW_OUTPUT/a; touch $MENDFLOW_OUTPUT/a/b",
        "echo 'y=[99999999999999999999999]' > $MENDFLOW_OUTPUT",
        'python3 -c \'print("y=" + "[" * 3000 + "]" * 3000)\' > $MENDFLOW_OUTPUT',
    ]
    for job in [await server.shell(command) for command in commands]:
        fault = (await server.outcome(job)).fault
        assert fault is not None and (fault.name, fault.category) == ("badOutput", Category.OUTPUT), job
        assert server.ledger.accepted_fences[job] == [1]
    await server.until(lambda: not list((pilot.work / "attempts").iterdir()), "all of it to be removed")


@pytest.mark.full
@ONE_LOOP
async def test_a_result_too_deep_is_not_data(staffed: Server) -> None:
    source = "def deep(n):\n  x = 'x' * 70000\n  for _ in range(n): x = [x]\n  return x\ndef large(n): return [2 ** n]"
    for depth in (100, 100_000):
        fault = (await staffed.outcome(await staffed.call(source, "deep", depth))).fault
        assert fault is not None and (fault.name, fault.category) == ("notData", Category.OUTPUT), depth
    assert (await staffed.outcome(await staffed.call(source, "large", 63))).outputs == [2**63]


async def test_a_job_that_could_not_be_started_leaves_nothing(server: Server, hire: Hire) -> None:
    pilot = hire()
    fault = (await server.outcome(await server.shell("true", env={"BIG": "x" * 200_000}))).fault
    assert fault is not None and (fault.name, fault.category) == ("badCommand", Category.INPUT)
    await server.until(lambda: not list((pilot.work / "attempts").iterdir()), "the folder to be removed")


@ONE_LOOP
async def test_an_exit_code_is_a_fault_of_the_job(staffed: Server) -> None:
    outcome = await staffed.outcome(await staffed.shell("echo why; exit 7"))
    assert outcome.fault is not None and outcome.fault.category is Category.JOB
    assert outcome.fault.exit_code == 7 and outcome.fault.log_tail == "why\n"


@ONE_LOOP
async def test_a_signal_is_a_fault_of_the_job(staffed: Server) -> None:
    fault = (await staffed.outcome(await staffed.shell("kill -SEGV $$"))).fault
    assert fault is not None and fault.category is Category.JOB and fault.signal == 11


@pytest.mark.full
async def test_each_attempt_has_a_folder_of_its_own_that_is_gone_after_the_verdict(server: Server, hire: Hire) -> None:
    pilot = hire()
    one = await server.outcome(await server.shell("pwd; ls -A; touch left-over; mkdir -p a/b; chmod 0 a"))
    two = await server.outcome(await server.shell("pwd; ls -A"))
    assert one.log_tail != two.log_tail and len(one.log_tail.split()) == len(two.log_tail.split()) == 1
    await server.until(lambda: not list((pilot.work / "attempts").iterdir()), "the folders to be removed")


@pytest.mark.full
async def test_short_jobs_that_follow_each_other_find_nothing_of_the_one_before(server: Server, hire: Hire) -> None:
    pilot = hire()
    leaves = ["", "; touch left", "; chmod 755 .", "; mkdir sub; chmod 0 .", "; rmdir $PWD", "; mv $PWD $PWD.away"]
    jobs = [await server.shell("pwd; ls -A; stat -c %a ." + leaves[number % 6]) for number in range(60)]
    seen = [(await server.outcome(job)).log_tail.split() for job in jobs]
    assert all(len(words) == 2 and words[1] == "700" for words in seen)
    assert len({words[0] for words in seen}) == len(jobs)
    for stray in (pilot.work / "attempts").glob("*.away"):
        stray.rmdir()
    await server.until(lambda: not list((pilot.work / "attempts").iterdir()), "the folders to be removed")


@ONE_LOOP
async def test_limits_bound_open_files_and_the_size_of_files(staffed: Server) -> None:
    limits = Limits(open_files=64, file_bytes=1 << 20, processes=4000)
    outcome = await staffed.outcome(await staffed.shell("ulimit -n; ulimit -f", limits=limits, shell="sh"))
    assert outcome.log_tail.split() == ["64", "2048"]
    outcome = await staffed.outcome(await staffed.shell("ulimit -n; ulimit -f", limits=limits, shell="bash"))
    assert outcome.log_tail.split() == ["64", "1024"], "bash counts in larger blocks"
    fault = (await staffed.outcome(await staffed.shell("head -c 2000000 /dev/zero > big", limits=limits))).fault
    assert fault is not None and fault.category is Category.JOB


@ONE_LOOP
async def test_a_command_too_long_for_an_argument_runs_all_the_same(staffed: Server) -> None:
    for filling in ("x" * 300_000, "\N{SNOWMAN}" * 70_000):
        outcome = await staffed.outcome(await staffed.shell(f": {filling}\necho fine"))
        assert outcome.ok and outcome.log_tail == "fine\n"


async def test_inputs_are_there_and_outputs_are_kept(server: Server, hire: Hire) -> None:  # FM-6
    pilot = hire()
    inputs = {"in/a.txt": server.keep(b"alpha\n"), "b.txt": server.keep(b"beta\n")}
    job = await server.shell("cat in/a.txt b.txt > out/all.txt", inputs=inputs, files={"all": "out/all.txt"})
    outcome = await server.outcome(job)
    assert outcome.ok
    ref = outcome.files["all"]
    assert server.ledger.files[ref.sha256] == b"alpha\nbeta\n"
    assert (ref.name, ref.bytes) == ("all.txt", 11)
    await server.until(lambda: not list((pilot.work / "attempts").iterdir()), "the folder to be removed")


@ONE_LOOP
async def test_a_job_cannot_spoil_an_input_for_the_next(staffed: Server) -> None:  # FM-6
    inputs = {"a": staffed.keep(b"clean")}
    await staffed.outcome(await staffed.shell("echo dirty > a", inputs=inputs))
    assert (await staffed.outcome(await staffed.shell("cat a", inputs=inputs))).log_tail == "clean"


@ONE_LOOP
async def test_a_promised_file_that_is_missing_is_named(staffed: Server) -> None:
    fault = (await staffed.outcome(await staffed.shell("true", files={"table": "table.csv"}))).fault
    assert fault is not None and fault.category is Category.OUTPUT
    assert "table" in fault.message and "table.csv" in fault.message


async def test_an_input_that_cannot_be_fetched_is_a_fault_of_data(server: Server, hire: Hire) -> None:
    hire()
    gone = server.keep(b"gone")
    server.ledger.files.clear()
    fault = (await server.outcome(await server.shell("cat a", inputs={"a": gone}))).fault
    assert fault is not None and fault.category is Category.DATA


@ONE_LOOP
async def test_no_path_may_leave_the_folder(staffed: Server) -> None:
    ref = staffed.keep(b"x")
    for inputs, files in (({"../a": ref}, {}), ({"/etc/a": ref}, {}), ({}, {"a": "../../a"})):
        fault = (await staffed.outcome(await staffed.shell("true", inputs=inputs, files=files))).fault
        assert fault is not None and fault.category is Category.INPUT and "leaves the job's folder" in fault.message


@ONE_LOOP
async def test_a_function_runs_and_its_value_is_reported(staffed: Server) -> None:
    source = "import os\ndef add(a, b=1):\n print('adding'); return {'sum': a + b, 'job': os.environ['MENDFLOW_JOB']}"
    job = await staffed.call(source, "add", 2, kwargs={"b": 5})
    outcome = await staffed.outcome(job)
    assert outcome.ok and outcome.outputs == {"sum": 7, "job": job} and outcome.log_tail == "adding\n"


@pytest.mark.full
async def test_an_exception_is_a_fault_with_its_name_and_traceback(server: Server, hire: Hire) -> None:
    hire()
    source = "class TooBig(Exception): pass\ndef f():\n print('so far'); raise TooBig('by 3')\n"
    fault = (await server.outcome(await server.call(source, "f"))).fault
    assert fault is not None and fault.category is Category.JOB
    assert (fault.name, fault.message) == ("TooBig", "by 3")
    assert fault.log_tail.startswith("so far\nTraceback") and "given.py" in fault.log_tail
    assert "worker/process.py" not in fault.log_tail


@pytest.mark.full
@ONE_LOOP
async def test_a_result_that_is_not_data_is_a_fault_that_says_so(staffed: Server) -> None:
    for source in ("def f(): return object()", "def f(): return {1: len}", "def f(): return [f]"):
        fault = (await staffed.outcome(await staffed.call(source, "f"))).fault
        assert fault is not None and fault.category is Category.OUTPUT and "not data" in fault.message


@pytest.mark.full
@pytest.mark.parametrize("options", [(), ("--cache-size", "0B")], ids=["kept", "past the cache"])
async def test_a_large_result_is_spilled_and_arrives_as_the_real_value(
    server: Server, hire: Hire, options: tuple[str, ...]
) -> None:
    hire(*options)
    made = await server.outcome(await server.call("def f(n): return ['x'] * n", "f", VALUE_BYTES_MAX))
    assert set(made.outputs) == {"$spilled", "bytes"}
    assert json.loads(server.ledger.files[made.outputs["$spilled"]]) == ["x"] * VALUE_BYTES_MAX
    used = await server.outcome(await server.call("def g(d): return len(d['deep'][0])", "g", {"deep": [made.outputs]}))
    assert used.outputs == VALUE_BYTES_MAX


async def test_large_outputs_of_a_command_are_spilled_one_by_one(server: Server, hire: Hire) -> None:
    hire()
    command = (
        'echo "small=1" >> $MENDFLOW_OUTPUT; (printf "big="; head -c 100000 /dev/zero | tr "\\0" x) >> $MENDFLOW_OUTPUT'
    )
    outputs = (await server.outcome(await server.shell(command))).outputs
    assert outputs["small"] == 1
    assert msgspec.json.decode(server.ledger.files[outputs["big"]["$spilled"]]) == "x" * 100_000


@pytest.mark.full
@ONE_LOOP
async def test_a_function_that_ends_its_process_is_a_fault_and_the_next_one_runs(staffed: Server) -> None:
    source = (
        "import ctypes, os, sys\n"
        "def leave(): print('bye'); os._exit(3)\n"
        "def crash(): ctypes.string_at(0)\n"
        "def polite(): sys.exit(4)\n"
        "def fine(): return 1\n"
    )
    jobs = [await staffed.call(source, name) for name in ("leave", "crash", "polite", "fine")]
    left, crashed, polite, fine = [await staffed.outcome(job) for job in jobs]
    assert left.fault is not None and left.fault.category is Category.JOB
    assert left.fault.exit_code == 3 and left.fault.log_tail == "bye\n"
    assert crashed.fault is not None and crashed.fault.category is Category.JOB and crashed.fault.signal == 11
    assert polite.fault is not None and polite.fault.name == "SystemExit"
    assert fine.outputs == 1


@pytest.mark.full
@ONE_LOOP
async def test_a_function_is_taken_from_the_flows_folder_only_if_its_source_is_the_deployed_one(
    staffed: Server, tmp_path: Path
) -> None:
    folder = tmp_path / "flow"
    folder.mkdir()
    (folder / "sibling.py").write_text("NAME = 'sibling'")
    deployed = "import sibling\ndef f(): return sibling.NAME + ' and ' + __file__\n"
    (folder / "steps.py").write_text(deployed)
    code = staffed.keep(deployed.encode())
    spec = JobSpec(item=ItemId("i"), function=FunctionRef(module="steps", name="f", code=code, folder=str(folder)))
    assert (await staffed.outcome(await staffed.submit(spec))).outputs == f"sibling and {folder}/steps.py"
    (folder / "steps.py").write_text("def f(): return 'edited since'")
    fault = (await staffed.outcome(await staffed.submit(spec))).fault
    assert fault is None or "edited" not in fault.message
    simple = staffed.keep(b"def f(): return 'deployed'")
    spec = JobSpec(item=ItemId("i"), function=FunctionRef(module="steps", name="f", code=simple, folder=str(folder)))
    assert (await staffed.outcome(await staffed.submit(spec))).outputs == "deployed"


@pytest.mark.full
@ONE_LOOP
async def test_two_versions_of_a_module_do_not_meet(staffed: Server) -> None:
    jobs = [await staffed.call(f"def f(): return {number}", "f") for number in (1, 2, 1, 2)]
    assert [(await staffed.outcome(job)).outputs for job in jobs] == [1, 2, 1, 2]


@pytest.mark.full
@ONE_LOOP
async def test_what_a_function_leaves_lying_about_does_not_reach_the_next(staffed: Server) -> None:
    source = (
        "import os, resource\n"
        "def f():\n"
        "  seen = [os.listdir('.'), os.environ.get('MARK'), resource.getrlimit(resource.RLIMIT_NOFILE)[0]]\n"
        "  open('left', 'w').close(); os.mkdir('folder'); return seen\n"
    )
    limited = await staffed.outcome(await staffed.call(source, "f", env={"MARK": "x"}, limits=Limits(open_files=70)))
    plain = await staffed.outcome(await staffed.call(source, "f"))
    assert limited.outputs == [[], "x", 70]
    assert plain.outputs[:2] == [[], None] and plain.outputs[2] != 70


@pytest.mark.full
async def test_a_function_with_files_works_in_its_own_folder(server: Server, hire: Hire) -> None:  # FM-6
    hire()
    source = "def f(): open('out.txt', 'w').write(open('in.txt').read().upper())"
    inputs, files = {"in.txt": server.keep(b"abc")}, {"out": "out.txt"}
    outcome = await server.outcome(await server.call(source, "f", inputs=inputs, files=files))
    assert server.ledger.files[outcome.files["out"].sha256] == b"ABC"
    fault = (await server.outcome(await server.call("def f(): pass", "f", files=files))).fault
    assert fault is not None and fault.category is Category.OUTPUT and "out.txt" in fault.message


@pytest.mark.full
@ONE_LOOP
async def test_a_crash_in_a_batch_costs_only_the_call_that_crashed(staffed: Server, tmp_path: Path) -> None:
    for _ in range(30):  # short ones, so that a slot gets several at a time
        await staffed.outcome(await staffed.call("def f(): pass", "f"))
    source = (
        "import os\ndef f(n, path):\n  open(f'{path}.{n}', 'a').write('x')\n  if n % 10 == 5: os._exit(n)\n  return n"
    )
    jobs = [await staffed.call(source, "f", number, str(tmp_path / "ran")) for number in range(40)]
    outcomes = [await staffed.outcome(job) for job in jobs]
    for number, outcome in enumerate(outcomes):
        if number % 10 == 5:
            assert outcome.fault is not None and outcome.fault.exit_code == number
        else:
            assert outcome.outputs == number
    assert [(tmp_path / f"ran.{number}").read_text() for number in range(40)] == ["x"] * 40  # each ran once


@pytest.mark.full
async def test_many_short_jobs_on_two_slots_are_all_reported_once(server: Server, hire: Hire) -> None:
    hire(slots=2)
    jobs = [await server.call("def f(n): return n", "f", number) for number in range(300)]
    jobs += [await server.shell(f"echo n={number} > $MENDFLOW_OUTPUT") for number in range(100)]
    for number, job in enumerate(jobs[:300]):
        assert (await server.outcome(job)).outputs == number
    for number, job in enumerate(jobs[300:]):
        assert (await server.outcome(job)).outputs == {"n": number}
    # A job that waited behind one that a busy machine held up was given back: then its newest attempt is the one.
    assert server.ledger.accepted_fences == {job: [server.ledger.fences[job]] for job in jobs}
