"""What a job description says is what the job is."""

from pathlib import Path

import pytest

from mendflow.core.model.errors import BadFlow
from mendflow.core.model.jobs import Limits
from mendflow.core.model.templates import PublicationTemplate, ResourceTemplates
from mendflow.formats import load
from tests.formats.jsdl.documents import HPC, SPMD, document, flow, job, posix, program, resources, staging


def test_a_program_with_its_arguments_is_run_as_it_stands() -> None:  # FM-2
    found = job(program("/bin/echo", "hello world", "it's", "$HOME", "", "a&lt;b"))
    assert found.command == """exec /bin/echo 'hello world' 'it'"'"'s' '$HOME' '' 'a<b'"""


def test_streams_and_the_working_directory_are_the_programs_own() -> None:  # FM-2
    found = job(
        posix(
            "<Executable>sort</Executable><Input>in.txt</Input><Output>out.txt</Output><Error>/dev/null</Error>",
            "<WorkingDirectory>deep/work</WorkingDirectory>",
        ),
        staging("in.txt", source="http://host/in"),
    )
    assert found.command == (
        "mkdir -p -- deep/work && cd -- deep/work || exit 125\nexec sort < in.txt > out.txt 2> /dev/null"
    )
    assert found.inputs == {"deep/work/in.txt": "http://host/in"}
    assert found.files == {"output": "deep/work/out.txt"}  # kept, as it is taken nowhere


def test_one_file_can_take_both_streams() -> None:
    found = job(posix("<Executable>a</Executable><Output>log</Output><Error>log</Error>"))
    assert found.command == "exec a > log 2>&1" and found.files == {"output": "log"}


def test_streams_that_are_kept_are_what_the_flow_gives() -> None:
    found = flow(
        "<JobIdentification><JobName>my job</JobName></JobIdentification>", program("a", more="<Output>o</Output>")
    )
    assert (found.name, found.body.name) == ("my-job", "my-job")
    assert found.outputs == {"output": "${{ jobs.my-job.files.output }}"}


def test_the_environment_is_text_and_nothing_else() -> None:  # FM-2
    found = job(program("a", more='<Environment name="X">  $Y ${{ 1 }}\n</Environment><Environment name="E"/>'))
    assert found.env == {"X": "  $Y $${{ 1 }}\n", "E": ""}


def test_a_shell_that_is_given_a_text_is_the_text() -> None:
    assert job(program("/bin/sh", "-c", "echo $HOME | wc")).command == "echo $HOME | wc"
    assert job(program("/bin/sh", "-c", "a", "b")).command == "exec /bin/sh -c a b"


def test_expressions_of_ours_mean_nothing_in_a_document() -> None:
    assert job(program("echo", "${{ inputs.x }}")).command == "exec echo '$${{ inputs.x }}'"


def test_all_limits_are_limits_of_the_job() -> None:  # FM-2
    limits = {
        "WallTimeLimit": 60, "FileSizeLimit": 1, "CoreDumpLimit": 0, "DataSegmentLimit": 2, "LockedMemoryLimit": 3,
        "MemoryLimit": 4, "OpenDescriptorsLimit": 5, "StackSizeLimit": 6, "CPUTimeLimit": 7, "ProcessCountLimit": 8,
        "VirtualMemoryLimit": 9,
    }  # fmt: skip
    found = job(program("a", more="".join(f"<{name}>{number}</{name}>" for name, number in limits.items())))
    assert found.resources == ResourceTemplates(wall_ms=60_000, memory_bytes=4)
    assert found.limits == Limits(
        file_bytes=1, core_bytes=0, data_bytes=2, locked_bytes=3, open_files=5, stack_bytes=6, cpu_ms=7000, processes=8,
        virtual_bytes=9,
    )  # fmt: skip


def test_the_machines_that_a_job_may_go_to_are_honoured() -> None:  # FM-2
    found = job(
        program("a"),
        resources(
            "<CandidateHosts><HostName>n1</HostName><HostName>n2</HostName></CandidateHosts>",
            "<ExclusiveExecution>false</ExclusiveExecution>",
            "<OperatingSystem><OperatingSystemType><OperatingSystemName>LINUX</OperatingSystemName>",
            "</OperatingSystemType><Description>any</Description></OperatingSystem>",
            "<CPUArchitecture><CPUArchitectureName>x86_64</CPUArchitectureName></CPUArchitecture>",
            "<TotalResourceCount><LowerBoundedRange>1</LowerBoundedRange></TotalResourceCount>",
        ),
    )
    assert found.resources == ResourceTemplates(hosts=("n1", "n2"), system="linux", machine="x86_64")


@pytest.mark.parametrize(
    ("asked", "cpus"),
    [
        ("<IndividualCPUCount><Exact>4</Exact></IndividualCPUCount>", 4),
        ("<TotalCPUCount><Exact>2.0</Exact></TotalCPUCount>", 2),
        ("<TotalCPUCount><UpperBoundedRange>8</UpperBoundedRange></TotalCPUCount>", 1),
        ("<IndividualCPUCount><LowerBoundedRange>2.5</LowerBoundedRange></IndividualCPUCount>", 3),
        ('<IndividualCPUCount><LowerBoundedRange exclusiveBound="true">2</LowerBoundedRange></IndividualCPUCount>', 3),
        ('<IndividualCPUCount><Exact epsilon="0.5">3.5</Exact></IndividualCPUCount>', 3),
        ('<IndividualCPUCount><Exact epsilon="1">3</Exact></IndividualCPUCount>', 3),
        ("<IndividualCPUCount><Exact>8</Exact><Exact>4</Exact></IndividualCPUCount>", 4),
        (
            "<IndividualCPUCount><Range><LowerBound>2</LowerBound><UpperBound>4</UpperBound></Range></IndividualCPUCount>"
            "<TotalCPUCount><LowerBoundedRange>3</LowerBoundedRange></TotalCPUCount>",
            3,
        ),
    ],
)
def test_the_least_that_all_ranges_allow_is_what_a_job_gets(asked: str, cpus: int) -> None:  # FM-2
    assert job(program("a"), resources(asked)).resources.cpus == cpus


def test_memory_and_disk_are_in_bytes_however_they_are_written() -> None:  # FM-2
    found = job(
        program("a"),
        resources(
            '<FileSystem name="SCRATCH"><FileSystemType>temporary</FileSystemType>'
            "<DiskSpace><LowerBoundedRange>5E9</LowerBoundedRange></DiskSpace></FileSystem>",
            "<IndividualPhysicalMemory><LowerBoundedRange>1.073741824E9</LowerBoundedRange></IndividualPhysicalMemory>",
            "<TotalDiskSpace><LowerBoundedRange>1000</LowerBoundedRange></TotalDiskSpace>",
        ),
    )
    assert (found.resources.memory_bytes, found.resources.disk_bytes) == (1 << 30, 5_000_000_000)


def test_a_limit_of_memory_is_given_where_the_needs_allow_it() -> None:
    asked = "<IndividualPhysicalMemory><{0}>1000</{0}></IndividualPhysicalMemory>"
    limit = program("a", more="<MemoryLimit>2000</MemoryLimit>")
    assert job(limit, resources(asked.format("LowerBoundedRange"))).resources.memory_bytes == 2000
    assert job(limit, resources(asked.format("Exact"))).resources.memory_bytes == 1000


def test_files_are_brought_and_taken_away() -> None:  # FM-2, FM-6
    found = job(
        program("./run", "x", more="<Output>out.txt</Output>"),
        staging("run", source="https://host/run"),
        staging("./dir/in", source="file:/data/in", more="<FilesystemName>SCRATCH</FilesystemName>"),
        staging("raw", source="lfn:/store/raw"),
        staging("out.txt", target="ftp://me:pw@host:2121/out.txt"),
        staging("log", flag="dontOverwrite", target="file:///tmp/log"),
        staging("table", target="lfn:/store/table"),
        staging("left", more=""),
    )
    assert found.inputs == {"run": "https://host/run", "dir/in": "file:///data/in", "raw": "lfn:/store/raw"}
    assert sorted(found.files.values()) == ["log", "out.txt", "table"]
    published = {found.files[name]: each for name, each in found.publish.items()}
    assert published == {
        "out.txt": PublicationTemplate(url="ftp://me:pw@host:2121/out.txt"),
        "log": PublicationTemplate(url="file:///tmp/log", overwrite=False),
        "table": PublicationTemplate(logical="lfn:/store/table"),
    }
    assert found.command == "chmod u+x -- ./run || exit 125\nexec ./run x > out.txt"  # what came was no program yet


def test_a_program_that_is_brought_is_found_without_a_path() -> None:
    found = job(program("run"), staging("run", source="http://host/run"))
    assert found.command == "chmod u+x -- ./run || exit 125\nexec ./run"
    assert job(program("run"), staging("other", source="http://host/run")).command == "exec run"


@pytest.mark.parametrize("value", ["true", "false", "1", "0"])
def test_what_is_to_be_deleted_is_gone_with_the_jobs_folder(value: str) -> None:
    more = f"<DeleteOnTermination>{value}</DeleteOnTermination>"
    text = staging("a", source="http://host/a").replace("<Source>", more + "<Source>")
    assert job(program("b"), text).inputs == {"a": "http://host/a"}


def test_a_document_without_an_application_only_moves_files() -> None:  # FM-2
    found = job(staging("a", source="http://host/a", target="file:///tmp/a"))
    assert found.command == ":" and found.inputs == {"a": "http://host/a"}
    assert [each.url for each in found.publish.values()] == ["file:///tmp/a"]


def test_a_file_beside_the_document_is_brought_from_there(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("here")
    path = tmp_path / "job.jsdl"
    path.write_text(document(program("cat", "in.txt"), staging("in.txt", source="in.txt")))
    found = load(path)
    assert found.folder == str(tmp_path) and found.name == "job"


def test_file_systems_are_places_that_the_shell_finds() -> None:  # FM-2
    found = job(
        posix(
            '<Executable filesystemName="APPS">bin/run</Executable><Argument filesystemName="HOME">my file</Argument>',
            '<Argument filesystemName="SCRATCH">x</Argument><Argument filesystemName="DATA">d</Argument>',
            '<Input filesystemName="ROOT">etc/hostname</Input>',
            '<WorkingDirectory filesystemName="SCRATCH">w</WorkingDirectory>',
            '<Environment name="T" filesystemName="TMP">t</Environment>',
        ),
        resources(
            '<FileSystem name="APPS"><MountPoint>/opt/apps/</MountPoint></FileSystem>',
            '<FileSystem name="DATA"><FileSystemType>normal</FileSystemType>',
            "<Description>ours</Description></FileSystem>",
        ),
        staging("in", source="http://host/in", more="<FilesystemName>DATA</FilesystemName>"),
    )
    assert found.command == (
        'jsdl_folder=$PWD\nexport T="${TMPDIR:-/tmp}"/t\n'
        'mkdir -p -- "$jsdl_folder"/w && cd -- "$jsdl_folder"/w || exit 125\n'
        'exec /opt/apps/bin/run "$HOME"/\'my file\' "$jsdl_folder"/x "$jsdl_folder"/DATA/d < /etc/hostname'
    )
    assert found.inputs == {"DATA/in": "http://host/in"}


def test_what_people_say_of_a_job_is_kept_for_people() -> None:  # FM-2
    found = flow(
        "<JobIdentification><JobName>Größe 7</JobName><Description> what it is </Description>"
        "<JobAnnotation>note</JobAnnotation><JobProject>p1</JobProject><JobProject>p2</JobProject></JobIdentification>",
        "<Application><ApplicationName>BLAST</ApplicationName><ApplicationVersion>1.4</ApplicationVersion>"
        "<Description>finds things</Description><p:POSIXApplication name='find'><p:Executable>a</p:Executable>"
        "</p:POSIXApplication></Application>",
    )
    assert found.description.splitlines() == [
        "what it is",
        "annotation: note",
        "project: p1",
        "project: p2",
        "application: BLAST",
        "version: 1.4",
        "finds things",
    ]
    assert (found.name, found.body.name) == ("Gr-e-7", "find")


def test_the_hpc_profile_names_a_program_likewise() -> None:  # FM-2
    found = job(
        f'<Application><HPCProfileApplication xmlns="{HPC}" name="a"><Executable>/bin/date</Executable>'
        '<Argument>-u</Argument><Output>o</Output><WorkingDirectory>.</WorkingDirectory><Environment name="A">b'
        "</Environment></HPCProfileApplication></Application>"
    )
    assert (found.name, found.command, found.env) == ("a", "exec /bin/date -u > o", {"A": "b"})


def spmd(*parts: str, kind: str = "MPI") -> str:
    return (
        f'<Application><s:SPMDApplication xmlns:s="{SPMD}"><p:Executable>./solve</p:Executable>{"".join(parts)}'
        f"<s:SPMDVariation>http://www.ogf.org/jsdl/2007/02/jsdl-spmd/{kind}</s:SPMDVariation></s:SPMDApplication></Application>"
    )


def test_processes_of_one_program_run_on_one_machine() -> None:  # FM-2
    more = "<s:NumberOfProcesses>4</s:NumberOfProcesses><s:ProcessesPerHost>4</s:ProcessesPerHost>"
    found = job(spmd(more, "<s:ThreadsPerProcess>2</s:ThreadsPerProcess>"), staging("solve", source="http://host/s"))
    assert found.command == "chmod u+x -- ./solve || exit 125\nexec mpiexec -n 4 ./solve"
    assert (found.resources.cpus, found.env) == (8, {"OMP_NUM_THREADS": "2"})


def test_processes_may_be_as_many_as_there_are_processors() -> None:
    asked = resources("<TotalCPUCount><Exact>6</Exact></TotalCPUCount>")
    more = '<s:NumberOfProcesses actualtotalcpucount="true"/>'
    assert job(spmd(more), asked).command == "exec mpiexec -n 6 ./solve"


def test_threads_of_one_process_are_told_their_number() -> None:
    found = job(spmd("<s:ThreadsPerProcess>3</s:ThreadsPerProcess>", kind="OpenMP"))
    assert (found.command, found.env, found.resources.cpus) == ("exec ./solve", {"OMP_NUM_THREADS": "3"}, 3)


def test_the_order_of_elements_and_what_stands_between_them_do_not_matter() -> None:
    text = "<!-- a --><?b c?>" + staging("a", source="http://host/a") + program("b") + "<!-- c -->"
    assert job(text).command == "exec b"
    assert job(program("<!-- x -->/bin/<!-- y -->echo")).command == "exec /bin/echo"


def test_a_flow_file_calls_a_job_description_like_another_flow(tmp_path: Path) -> None:  # FM-2
    (tmp_path / "job.jsdl").write_text(document(program("a")))
    (tmp_path / "flow.yaml").write_text("steps:\n  - call: job.jsdl\n")
    [called] = load(tmp_path / "flow.yaml").calls
    assert called.name == "job"
    (tmp_path / "job.jsdl").write_text(document(program("a;b")))
    with pytest.raises(BadFlow) as caught:
        load(tmp_path / "flow.yaml")
    assert [(Path(each.file).name, each.line) for each in caught.value.problems] == [("job.jsdl", 2)]
