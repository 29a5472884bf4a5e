"""A document with a parameter sweep is as many jobs as its values make."""

from mendflow.core.model.flow import Flow, ForEach, JobActivity, Parallel
from mendflow.core.model.values import Value
from mendflow.core.xml import parse
from mendflow.formats.jsdl import read_jsdl
from mendflow.formats.jsdl.sweep import SweepTarget, edited
from tests.formats.jsdl.documents import JSDL, POSIX, program, refused, staging

SWEEP = "http://schemas.ogf.org/jsdl/2009/03/sweep"
FUNCTIONS = "http://schemas.ogf.org/jsdl/2009/03/sweep/functions"


def swept(*sweeps: str, described: str) -> str:
    return (
        f'<JobDefinition xmlns="{JSDL}" xmlns:s="{SWEEP}" xmlns:f="{FUNCTIONS}">\n'
        f"<JobDescription><JobIdentification><JobName>try</JobName></JobIdentification>{described}</JobDescription>\n"
        + "\n".join(sweeps)
        + "</JobDefinition>"
    )


def sweep(*parts: str) -> str:
    return f"<s:Sweep>{''.join(parts)}</s:Sweep>"


def assign(match: str, function: str) -> str:
    return (
        f'<s:Assignment><s:DocumentNode><s:NamespaceBinding ns="{POSIX}" prefix="p"/>'
        f'<s:NamespaceBinding ns="{JSDL}" prefix="j"/><s:Match>{match}</s:Match></s:DocumentNode>'
        f"{function}</s:Assignment>"
    )


def values(*texts: str) -> str:
    return f"<f:Values>{''.join(f'<f:Value>{text}</f:Value>' for text in texts)}</f:Values>"


def integers(start: int, end: int, more: str = "", inner: str = "") -> str:
    return f'<f:LoopInteger start="{start}" end="{end}" {more}>{inner}</f:LoopInteger>'


def read(*sweeps: str, described: str) -> Flow:
    return read_jsdl(swept(*sweeps, described=described), "/nowhere/doc.jsdl")


def items(flow: Flow) -> list[dict[str, Value]]:
    assert isinstance(flow.body, ForEach) and isinstance(flow.body.items, list)
    return flow.body.items


def job_of(flow: Flow) -> JobActivity:
    assert isinstance(flow.body, ForEach) and isinstance(flow.body.body, JobActivity)
    return flow.body.body


ECHO = program("/bin/echo", "X", "Y")
FIRST, SECOND = "/*//p:Argument[1]", "/*//p:Argument[2]"


def test_a_sweep_over_a_list_is_one_loop_with_a_job_for_each_value() -> None:  # FM-2
    flow = read(sweep(assign(FIRST, values("a", "b c", "d"))), described=ECHO)
    assert items(flow) == [{"command": "a"}, {"command": "'b c'"}, {"command": "d"}]
    job = job_of(flow)
    assert job.command == 'exec /bin/echo ${{ job["command"] }} Y'
    assert (flow.name, flow.body.name, job.label) == ("try", "try", "try")


def test_numbers_run_from_the_first_to_the_last_in_steps_and_leave_exceptions_out() -> None:  # FM-2
    wanted = integers(1, 10, 'step="3"', '<f:Exception value="4"/>')
    assert [each["command"] for each in items(read(sweep(assign(FIRST, wanted)), described=ECHO))] == ["1", "7", "10"]
    down = '<f:LoopDouble start="0.3" end="0" step="-0.1"/>'
    found = items(read(sweep(assign(FIRST, down)), described=ECHO))
    assert [each["command"] for each in found] == ["0.3", "0.2", "0.1", "0"]


def test_a_sweep_in_a_sweep_gives_every_combination() -> None:  # FM-2
    inner = sweep(assign(SECOND, integers(1, 3)))
    found = items(read(sweep(assign(FIRST, values("a", "b")), inner), described=ECHO))
    assert [each["command"] for each in found] == ["a 1", "a 2", "a 3", "b 1", "b 2", "b 3"]


def test_assignments_of_one_sweep_change_together() -> None:  # FM-2
    both = sweep(assign(FIRST, values("a", "b")), assign(SECOND, values("1", "2")))
    assert [each["command"] for each in items(read(both, described=ECHO))] == ["a 1", "b 2"]


def test_sweeps_beside_each_other_run_one_after_the_other() -> None:
    found = read(sweep(assign(FIRST, values("a", "b"))), sweep(assign(SECOND, values("1"))), described=ECHO)
    assert [each["command"] for each in items(found)] == ["a Y", "b Y", "X 1"]


def test_attributes_parts_of_texts_files_and_resources_are_swept_as_well() -> None:
    described = (
        program("a", more='<Environment name="SEED">run-00-x</Environment>')
        + "<Resources><IndividualPhysicalMemory><Exact>1</Exact></IndividualPhysicalMemory></Resources>"
        + staging("in.txt", source="http://host/in")
        + staging("out.txt", target="file:///data/out")
    )
    flow = read(
        sweep(
            assign('substring(//p:Environment[@name="SEED"], 5, 2)', integers(10, 11)),
            assign("//j:Exact", values("1000", "2000")),
            assign("//j:Source/j:URI", values("http://host/1", "http://host/2")),
            assign("//j:Target/j:URI", values("file:///data/1", "file:///data/2")),
            assign("//j:DataStaging[2]/j:FileName", values("o1", "o2")),
        ),
        described=described,
    )
    assert items(flow)[1] == {
        "staged_1": "2",
        "memory": 2000,
        "SEED": "run-11-x",
        "in_txt": "2",
        "staged_1_2": "o2",
    }
    job = job_of(flow)
    assert job.env == {"SEED": '${{ job["SEED"] }}'}
    assert job.inputs == {"in.txt": 'http://host/${{ job["in_txt"] }}'}
    assert job.publish["staged_1"].url == 'file:///data/${{ job["staged_1"] }}'
    assert job.resources.memory_bytes == '${{ job["memory"] }}'


def test_jobs_that_differ_in_a_limit_are_a_loop_each() -> None:
    described = program("a", more="<OpenDescriptorsLimit>1</OpenDescriptorsLimit><Output>o</Output>")
    flow = read(sweep(assign("//p:OpenDescriptorsLimit", integers(100, 102))), described=described)
    assert isinstance(flow.body, Parallel) and len(flow.body.branches) == 3
    assert flow.outputs == {
        "output": "${{ jobs.`try`.files.output + jobs.`try-2`.files.output + jobs.`try-3`.files.output }}"
    }


def test_what_a_sweep_cannot_mean_is_refused_with_its_line() -> None:  # FM-2
    def told(*sweeps: str) -> list[str]:
        return refused(swept(*sweeps, described=ECHO))

    assert told(sweep(assign(FIRST, values("a", "b")), assign(SECOND, values("1")))) == [
        "3: the assignments of a <Sweep> change together, and these have 2, 1 values; give as many"
    ]
    assert "names 2 places" in told(sweep(assign("//p:Argument", values("a"))))[0]
    assert "need a prefix" in told(sweep(assign("//Argument", values("a"))))[0]
    assert "is no XPath expression" in told(sweep(assign("//q:Argument[", values("a"))))[0]
    assert "searches the document again" in told(sweep(assign("//*[//*]", values("a"))))[0]
    for path in ("/descendant::*/following::*/preceding::*", "//p:Argument/ancestor::*//p:Argument", "//*//*//*"):
        assert "again and again" in told(sweep(assign(path, values("a"))))[0]
    assert "step of 0" in told(sweep(assign(FIRST, integers(1, 2, 'step="0"'))))[0]
    assert "gives no value" in told(sweep(assign(FIRST, integers(2, 1))))[0]
    assert "whole number" in told(sweep(assign(FIRST, '<f:LoopInteger start="0.5" end="2"/>')))[0]
    assert "at most 10,000" in told(sweep(assign(FIRST, integers(1, 1_000_000_000))))[0]
    assert "at most 10,000" in told(sweep(assign(FIRST, integers(1, 200)), sweep(assign(SECOND, integers(1, 200)))))[0]


def test_a_sweep_of_large_descriptions_is_refused_before_it_is_written_out() -> None:  # SE-3
    described = program("a", more="<Argument>b</Argument>" * 3_000)
    (told,) = refused(swept(sweep(assign("//p:Argument[1]", integers(1, 100))), described=described))
    assert "100 jobs have 300,600 elements" in told and "at most 200,000 are taken" in told


def test_the_first_job_that_cannot_be_read_is_named() -> None:
    described = program("a", more="<WallTimeLimit>60</WallTimeLimit>")
    (told,) = refused(swept(sweep(assign("//p:WallTimeLimit", values("60", "soon"))), described=described))
    assert told == "2: <WallTimeLimit> is a whole number from 1 on, not `soon`"


def test_each_job_of_a_sweep_copies_its_description_and_not_the_sweep() -> None:
    """A sweep may be as long as there are jobs."""
    text = swept(sweep(assign(FIRST, values(*map(str, range(50))))), described=ECHO)
    root = parse(text, "doc.jsdl")
    described = root[0]
    copy = edited(described, ((SweepTarget(len(list(described.iter())) - 1), "z"),))
    assert len(list(copy.iter())) == len(list(described.iter())) and len(list(copy.getroottree().iter())) < 20
    assert [each.text for each in copy.iter(f"{{{POSIX}}}Argument")] == ["X", "z"]


def test_a_description_inside_a_value_is_no_place_to_change() -> None:
    other = f'<f:Values><f:Value><JobDescription><p:X xmlns:p="{POSIX}">a</p:X></JobDescription></f:Value></f:Values>'
    told = refused(swept(sweep(assign("/*//p:X", other)), described=ECHO))
    assert len(told) == 1 and "names 0 places of the <JobDescription>" in told[0]
