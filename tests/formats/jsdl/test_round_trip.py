"""What is written is the same job when it is read, and what JSDL cannot say is told."""

import math
import shlex
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree
from msgspec.structs import replace

from mendflow.core.expressions import literal, plain_text
from mendflow.core.model.errors import BadFlow
from mendflow.core.model.flow import Empty, Flow, JobActivity, Sequence
from mendflow.core.model.ids import FlowName
from mendflow.core.model.jobs import Limits, Submission
from mendflow.core.model.shells import PLAIN_SHELL
from mendflow.core.model.templates import PublicationTemplate, ResourceTemplates
from mendflow.formats.jsdl import read_jsdl, write_jsdl
from mendflow.formats.jsdl.program import Program, command_of, program_of
from mendflow.formats.jsdl.ranges import Interval, Range, choose_amount, contains
from mendflow.formats.jsdl.vocabulary import MACHINES, SYSTEMS
from tests.formats.jsdl.documents import document, flow, posix, program, resources, staging

TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Cn"]) | st.sampled_from("\n\t${}'\" "))
NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,9}", fullmatch=True)
PATHS = st.lists(st.from_regex(r"[a-z0-9][a-z0-9. _-]{0,7}[a-z0-9]", fullmatch=True), min_size=1, max_size=3).map(
    "/".join
)
URLS = st.builds("{}://host/{}".format, st.sampled_from(["http", "ftp", "s3"]), PATHS) | PATHS.map(
    "lfn:/store/{}".format
)
TARGETS = st.builds("{}://host/{}".format, st.sampled_from(["ftp", "s3"]), PATHS) | PATHS.map("file:///{}".format)
AMOUNTS = st.integers(1, 2**53)
WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Cn"]), max_size=12)


@st.composite
def commands(draw: st.DrawFn) -> str:
    """Texts for a shell, and lines of programs."""
    if draw(st.booleans()):
        return draw(TEXTS.filter(str.strip)).replace("\r", "\n")
    streams = {name: draw(st.just("") | PATHS.map(shlex.quote)) for name in ("input", "output", "error", "folder")}
    return command_of(
        Program(
            executable=shlex.quote(draw(PATHS)),
            arguments=tuple(map(shlex.quote, draw(st.lists(WORDS, max_size=4)))),
            input=streams["input"],
            output=streams["output"],
            error=streams["error"],
            folder=streams["folder"],
            makes_folder=bool(streams["folder"]),
        )
    )


@st.composite
def jobs(draw: st.DrawFn) -> JobActivity:
    outputs = draw(st.dictionaries(NAMES.filter(lambda name: name not in ("output", "error")), PATHS, max_size=3))
    outputs = {name: path for name, path in outputs.items() if list(outputs.values()).count(path) == 1}
    return JobActivity(
        name=draw(NAMES),
        command=literal(draw(commands())),
        shell=draw(st.sampled_from(["", "bash", "sh", PLAIN_SHELL])),
        env={name: literal(value) for name, value in draw(st.dictionaries(NAMES, TEXTS, max_size=3)).items()},
        inputs=draw(st.dictionaries(PATHS, URLS, max_size=3)),
        files=outputs,
        publish={name: PublicationTemplate(url=draw(TARGETS), overwrite=draw(st.booleans())) for name in outputs},
        resources=ResourceTemplates(
            cpus=float(draw(st.integers(1, 64))),
            memory_bytes=draw(st.just(0) | AMOUNTS),
            disk_bytes=draw(st.just(0) | AMOUNTS),
            wall_ms=draw(st.integers(0, 10**6)) * 1000,
            hosts=tuple(draw(st.lists(NAMES, unique=True, max_size=3))),
            system=draw(st.sampled_from(["", *sorted(set(SYSTEMS.values()))])),
            machine=draw(st.sampled_from(["", *MACHINES])),
        ),
        limits=Limits(
            open_files=draw(st.integers(0, 9)),
            file_bytes=draw(st.integers(0, 9)),
            processes=draw(st.integers(0, 9)),
            cpu_ms=draw(st.integers(0, 9)) * 1000,
            stack_bytes=draw(st.integers(0, 9)),
            data_bytes=draw(st.integers(0, 9)),
            locked_bytes=draw(st.integers(0, 9)),
            virtual_bytes=draw(st.integers(0, 9)),
            core_bytes=draw(st.none() | st.integers(0, 9)),
        ),
    )


def as_flow(job: JobActivity) -> Flow:
    return Flow(name=FlowName("trip"), body=job, description="there\nand back", folder="/nowhere")


@given(jobs())
def test_a_job_that_is_written_is_the_same_when_it_is_read(job: JobActivity) -> None:  # FM-2
    text = write_jsdl(as_flow(job))
    again = read_jsdl(text, "/nowhere/trip.jsdl")
    assert isinstance(again.body, JobActivity)
    assert replace(again.body, shell=job.shell) == job
    assert job.command is not None
    command = plain_text(job.command)
    assert isinstance(command, str)
    is_program = command == ":" or program_of(command) is not None  # which every shell runs alike
    assert is_program or again.body.shell == (job.shell or "bash")
    assert (again.name, again.description, again.folder) == ("trip", "there\nand back", "/nowhere")
    assert write_jsdl(again) == text


@pytest.mark.parametrize(
    "parts",
    [
        [program("/bin/echo", "a b", "", more="<Output>o</Output><Error>e</Error>")],
        [program("a", more="<Input>i</Input><Output>o</Output><Error>o</Error><WorkingDirectory>w</WorkingDirectory>")],
        [
            program("run"),
            staging("run", source="http://h/run"),
            staging("o", target="lfn:/store/o", flag="dontOverwrite"),
        ],
        [posix('<Executable>a</Executable><Argument filesystemName="HOME">b</Argument>')],
        [staging("a", source="http://h/a", target="file:///a")],
        [
            program("a", more="<CoreDumpLimit>0</CoreDumpLimit>"),
            resources("<TotalCPUCount><Exact>2</Exact></TotalCPUCount>"),
        ],
    ],
)
def test_a_document_that_is_read_and_written_says_the_same(parts: list[str]) -> None:  # FM-2
    found = flow(*parts)
    assert read_jsdl(write_jsdl(found), "/nowhere/doc.jsdl") == found


def test_a_program_is_written_as_a_program_and_a_line_as_a_shells() -> None:
    job = JobActivity(name="a", command="exec /bin/echo 'a b' > out", files={"output": "out"})
    assert "<jsdl-posix:Executable>/bin/echo</jsdl-posix:Executable>" in write_jsdl(as_flow(job))
    line = write_jsdl(as_flow(JobActivity(name="a", command="echo a | wc -c")))
    assert "<jsdl-posix:Argument>echo a | wc -c</jsdl-posix:Argument>" in line
    lines = write_jsdl(as_flow(JobActivity(name="a", command="echo a\necho b")))
    assert '<jsdl-posix:Environment name="MENDFLOW_SCRIPT">echo a\necho b</jsdl-posix:Environment>' in lines


def test_lines_in_an_environment_run_wherever_such_a_document_is_understood() -> None:
    """Another program that reads JSDL runs what it says: a shell, its arguments, and its environment."""
    root = etree.fromstring(
        write_jsdl(as_flow(JobActivity(name="a", command="for i in 1 2; do\n echo $i\ndone"))).encode()
    )
    words = [str(each.text) for each in root.iter("{*}Executable", "{*}Argument")]
    env = {str(each.get("name")): str(each.text) for each in root.iter("{*}Environment")}
    assert subprocess.run(words, env=env, capture_output=True, text=True, check=True).stdout == "1\n2\n"


def test_a_flow_that_is_nothing_but_its_job_is_written() -> None:
    body = Sequence(name="all", body=(JobActivity(name="a", command="b", label="c"),))
    assert read_jsdl(write_jsdl(replace(as_flow(JobActivity(name="x", command="y")), body=body))).body == JobActivity(
        name="a", command="b", shell="bash"
    )


JOB = JobActivity(name="a", command="b")


@pytest.mark.parametrize(
    ("job", "told"),
    [
        (replace(JOB, command="echo ${{ inputs.x }}"), "the expression in"),
        (replace(JOB, shell="Rscript {0}"), "the shell `Rscript"),
        (replace(JOB, priority=3), "a priority"),
        (replace(JOB, retries=3, owner="me"), "an owner"),
        (replace(JOB, submission=Submission.FORGET), "how it is submitted"),
        (replace(JOB, resources=ResourceTemplates(gpus=1)), "gpus"),
        (replace(JOB, resources=ResourceTemplates(site="t0")), "a site"),
        (replace(JOB, resources=ResourceTemplates(cpus=0.5)), "no whole number"),
        (replace(JOB, resources=ResourceTemplates(wall_ms=1500)), "no whole number of seconds"),
        (replace(JOB, resources=ResourceTemplates(machine="riscv64")), "the machine riscv64"),
        (replace(JOB, files={"t": "t"}), "that t is kept by the server"),
        (
            replace(JOB, files={"t": "t"}, publish={"t": PublicationTemplate(logical="/t", element="e")}),
            "on which storage element",
        ),
        (replace(JOB, command="echo \x01"), "its texts as they are"),
        (replace(JOB, inputs={"all/": "http://h/a"}), "its files"),
    ],
)
def test_what_jsdl_cannot_say_is_told(job: JobActivity, told: str) -> None:  # FM-2
    with pytest.raises(BadFlow, match=told):
        write_jsdl(as_flow(job))


def test_more_than_a_job_is_no_job_description() -> None:
    with pytest.raises(BadFlow, match="more than one job"):
        write_jsdl(Flow(name=FlowName("f"), body=Sequence(name="s", body=(JOB, Empty(name="e")))))
    with pytest.raises(BadFlow, match="the flow's outputs"):
        write_jsdl(replace(as_flow(JOB), outputs={"x": 1}))


@given(commands())
def test_only_the_line_of_a_program_is_taken_for_one(command: str) -> None:
    found = program_of(command)
    assert found is None or command_of(found) == command


NUMBERS = st.floats(-10, 100) | st.integers(-10, 100).map(float)


@st.composite
def intervals(draw: st.DrawFn) -> Interval:
    low, high = sorted((draw(NUMBERS | st.just(-math.inf)), draw(NUMBERS | st.just(math.inf))))
    if draw(st.booleans()) and math.isfinite(low):
        return Interval(low=low, high=low, best=low)
    return Interval(low=low, high=high, low_open=draw(st.booleans()), high_open=draw(st.booleans()))


RANGES = st.lists(intervals(), min_size=1, max_size=3).map(tuple)


@given(st.lists(RANGES, min_size=1, max_size=2), st.none() | st.integers(1, 3))
def test_the_amount_that_is_chosen_is_one_that_all_ranges_allow(ranges: list[Range], usual: int | None) -> None:  # FM-2
    found = choose_amount(ranges, usual)
    possible = [number for number in range(1, 200) if contains(ranges, number)]
    if found is None:
        assert not possible or all(math.isinf(each.low) or each.low < 1 for one in ranges for each in one if 1 in each)
    else:
        assert found >= 1 and contains(ranges, found)
        assert usual not in possible or found == usual


def test_a_document_of_this_file_is_one() -> None:
    assert read_jsdl(document(program("a"))).body.name == "job"
