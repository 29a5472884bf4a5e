"""What no pilot can honour is refused by its name, with its line and what to do; nothing is passed over."""

import pytest

from mendflow.formats.jsdl.vocabulary import REFUSED_POSIX, REFUSED_RESOURCES
from tests.formats.jsdl.documents import (
    JSDL,
    POSIX,
    SPMD,
    complaints,
    document,
    posix,
    program,
    refused,
    resources,
    staging,
)
from tests.formats.jsdl.test_reading import spmd

EXACT = "<Exact>1</Exact>"
RUN = program("a")


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        (
            [RUN, resources("<ExclusiveExecution>true</ExclusiveExecution>")],
            "3: <ExclusiveExecution> cannot be honoured",
        ),
        (
            [RUN, resources("<TotalResourceCount><Exact>2</Exact></TotalResourceCount>")],
            "3: <TotalResourceCount> cannot",
        ),
        *(
            ([RUN, resources(f"<{name}>{EXACT}</{name}>")], f"3: <{name}> cannot be honoured")
            for name in REFUSED_RESOURCES
        ),
        *(([program("a", more=f"<{name}>1</{name}>")], f"2: <{name}> cannot be honoured") for name in REFUSED_POSIX),
        (
            [RUN, resources("<OperatingSystem><OperatingSystemVersion>5</OperatingSystemVersion></OperatingSystem>")],
            "3: <OperatingSystemVersion> cannot be honoured",
        ),
        (
            [
                RUN,
                resources(
                    "<OperatingSystem><OperatingSystemType><OperatingSystemName>WINNT</OperatingSystemName>"
                    "</OperatingSystemType></OperatingSystem>"
                ),
            ],
            "no pilot runs on `WINNT`",
        ),
        (
            [RUN, resources("<CPUArchitecture><CPUArchitectureName>other</CPUArchitectureName></CPUArchitecture>")],
            "<CPUArchitectureName> cannot be honoured",
        ),
        ([RUN, resources('<FileSystem name="S"><FileSystemType>swap</FileSystemType></FileSystem>')], "no swap space"),
        (
            [RUN, resources('<FileSystem name="S"><MountSource>nfs:/a</MountSource></FileSystem>')],
            "a pilot mounts nothing",
        ),
        (
            [
                RUN,
                resources(
                    f'<FileSystem name="S"><MountPoint>/s</MountPoint><DiskSpace>{EXACT}</DiskSpace></FileSystem>'
                ),
            ],
            "nobody knows how much room",
        ),
        ([RUN, staging("a", flag="append", source="http://h/a")], "3: <CreationFlag> append cannot be honoured"),
        ([RUN, staging("a", flag="append", target="file:///a")], "3: <CreationFlag> append cannot be honoured"),
        ([RUN, staging("/etc/a", source="http://h/a")], "puts files only into the job's own folder"),
        ([RUN, staging("../a", source="http://h/a")], "leads out of the job's folder"),
        (
            [RUN, staging("a", source="http://h/a", more="<FilesystemName>HOME</FilesystemName>")],
            "<FilesystemName> `HOME` cannot be honoured for staging",
        ),
        (
            [program("a", more="<WorkingDirectory>/work</WorkingDirectory>"), staging("a", source="http://h/a")],
            "puts files only into the job's own folder",
        ),
        ([RUN, staging("a", source="srm://h/a")], "`srm` is not supported"),
        ([RUN, staging("a", target="gsiftp://h/a")], "gsiftp:// can only be read from"),
        ([RUN, staging("a", source="scp:///a")], "names no machine"),
        ([RUN, staging("a", source="urn:a:b")], "`urn` is not supported"),
        ([RUN, staging("a", target="http://h/a")], "http:// can only be read from"),
        ([RUN, staging("a", target="a/b")], "it is no URL"),
        ([RUN, staging("a", target="mailto:me@h")], "`mailto` is not supported"),
        (
            [spmd("<s:NumberOfProcesses>4</s:NumberOfProcesses><s:ProcessesPerHost>2</s:ProcessesPerHost>")],
            "<ProcessesPerHost> cannot be honoured",
        ),
        ([spmd(kind="PVM")], "<SPMDVariation>"),
        ([spmd(kind="MPICH2")], "<SPMDVariation>"),
        ([spmd("<s:NumberOfProcesses>2</s:NumberOfProcesses>", kind="OpenMP")], "one process"),
        (
            ["<Application><ApplicationName>BLAST</ApplicationName></Application>"],
            "<ApplicationName> cannot be honoured",
        ),
        (['<Application><x:Thing xmlns:x="urn:x"/></Application>'], "<Thing> of 'urn:x' is no kind of application"),
        (['<x:Sweep xmlns:x="http://schemas.ogf.org/jsdl/2009/03/sweep"/>'], "<Sweep> of sweep has no place"),
        ([RUN, '<Resources x:a="b" xmlns:x="urn:x"/>'], "the attribute `a`"),
        (
            [RUN, resources('<x:GPU xmlns:x="urn:x">1</x:GPU>')],
            "<GPU> of 'urn:x' is an extension that nobody here knows",
        ),
        (
            [RUN, staging("a", source="http://h/a").replace("<URI>", '<x:Credential xmlns:x="urn:c"/><URI>')],
            "<Credential>",
        ),
    ],
)
def test_what_cannot_be_honoured_is_refused_by_name(parts: list[str], told: str) -> None:  # FM-2
    found = complaints(*parts)
    assert any(told in each for each in found), found


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        ([posix("<Argument>a</Argument>")], "2: <POSIXApplication> names no <Executable>"),
        ([program("echo $A; date")], "is a line for a shell, and no program"),
        ([program("")], "<Executable> is empty"),
        ([posix("<Executable>a</Executable><Executable>b</Executable>")], "<Executable> may stand only once"),
        ([posix("<Executable>a</Executable><Arguments>b</Arguments>")], "<POSIXApplication> has no <Arguments>"),
        ([program("a", more="<Executable><b/></Executable>")], "may stand only once"),
        ([posix("<Executable><b/>a</Executable>")], "<Executable> holds a text and no elements"),
        ([program("a", more="text")], "holds elements and no text"),
        ([program("a", more="<WallTimeLimit>-1</WallTimeLimit>")], "a whole number from 1 on, not `-1`"),
        ([program("a", more="<WallTimeLimit>1e3</WallTimeLimit>")], "a whole number"),
        ([program("a", more="<WallTimeLimit>99999999999</WallTimeLimit>")], "longer than ten years"),
        ([program("a", more="<Environment>b</Environment>")], "<Environment> needs a name"),
        ([program("a", more='<Environment name="A">b</Environment><Environment name="A">c</Environment>')], "twice"),
        ([program("a", more='<Output filesystemName="NOWHERE">b</Output>')], "`NOWHERE`, which is not described"),
        ([program("a", more="<Output>../b</Output>")], "leads out of the job's folder"),
        ([RUN, RUN], "<Application> may stand only once in <JobDescription>"),
        ([RUN, resources("<IndividualCPUCount/>")], "says no amount"),
        (
            [RUN, resources("<IndividualCPUCount><Exact>many</Exact></IndividualCPUCount>")],
            "holds a number, not `many`",
        ),
        ([RUN, resources("<IndividualCPUCount><Exact>NaN</Exact></IndividualCPUCount>")], "holds a number"),
        ([RUN, resources('<IndividualCPUCount><Exact epsilon="-1">2</Exact></IndividualCPUCount>')], "from 0 on"),
        ([RUN, resources("<IndividualCPUCount><Exact>1.5</Exact></IndividualCPUCount>")], "allows no amount"),
        (
            [
                RUN,
                resources(
                    "<IndividualCPUCount><Exact>2</Exact></IndividualCPUCount><TotalCPUCount><Exact>3</Exact>"
                    "</TotalCPUCount>"
                ),
            ],
            "allows no amount that a job can be given",
        ),
        (
            [
                RUN,
                resources(
                    "<IndividualCPUCount><Range><LowerBound>3</LowerBound><UpperBound>2</UpperBound></Range>"
                    "</IndividualCPUCount>"
                ),
            ],
            "nothing lies in this <Range>",
        ),
        (
            [RUN, resources("<IndividualCPUCount><Range><LowerBound>3</LowerBound></Range></IndividualCPUCount>")],
            "a <LowerBound> and an <UpperBound>",
        ),
        (
            [RUN, resources("<TotalDiskSpace><LowerBoundedRange>1E300</LowerBoundedRange></TotalDiskSpace>")],
            "more than there is",
        ),
        ([RUN, resources("<CandidateHosts/>")], "<CandidateHosts> names no host"),
        (
            [RUN, resources("<CPUArchitecture><CPUArchitectureName>x68</CPUArchitectureName></CPUArchitecture>")],
            "`x68` is no architecture",
        ),
        (
            [
                RUN,
                resources(
                    "<OperatingSystem><OperatingSystemType><OperatingSystemName>Linux</OperatingSystemName>"
                    "</OperatingSystemType></OperatingSystem>"
                ),
            ],
            "`Linux` is no system",
        ),
        ([RUN, resources("<FileSystem><MountPoint>/a</MountPoint></FileSystem>")], "a <FileSystem> has a name"),
        ([RUN, resources('<FileSystem name="A"/><FileSystem name="A"/>')], "described twice"),
        ([RUN, resources('<FileSystem name="A"><MountPoint>a</MountPoint></FileSystem>')], "a whole path"),
        ([RUN, staging("a", flag="", source="http://h/a")], "has no <CreationFlag>"),
        ([RUN, staging("a", flag="owerwrite", source="http://h/a")], "`owerwrite` is no <CreationFlag>"),
        ([RUN, staging("a", source="http://h/a").replace("http://h/a", "")], "<URI> is empty"),
        ([RUN, staging("a", source="http://h/a").replace("<URI>http://h/a</URI>", "")], "<Source> has no <URI>"),
        ([RUN, staging("a", source="http:///a")], "it names no machine"),
        ([RUN, staging("a", source="lfn:a")], "names no logical file"),
        ([RUN, staging("a", source="not/there")], "there is no file `not/there`"),
        (
            [RUN, staging("a", source="http://h/a"), staging("a", source="http://h/b")],
            "4: two sources are brought to `a`",
        ),
        ([RUN, staging("a", target="file:///a"), staging("./a", target="file:///b")], "4: `a` has two targets"),
        ([RUN, "<DataStaging><CreationFlag>overwrite</CreationFlag></DataStaging>"], "has no <FileName>"),
        (
            [
                RUN,
                staging("a", source="http://h/a").replace(
                    "<Source>", "<DeleteOnTermination>yes</DeleteOnTermination><Source>"
                ),
            ],
            "<DeleteOnTermination> is true or false, not `yes`",
        ),
        (
            [
                program("a", more="<MemoryLimit>10</MemoryLimit>"),
                resources("<IndividualPhysicalMemory><Exact>20</Exact></IndividualPhysicalMemory>"),
            ],
            "<MemoryLimit> of 10 bytes is less",
        ),
        (
            [
                spmd("<s:NumberOfProcesses>4</s:NumberOfProcesses>"),
                resources("<TotalCPUCount><Exact>2</Exact></TotalCPUCount>"),
            ],
            "need 4 processors",
        ),
    ],
)
def test_what_is_wrong_is_told_with_its_line(parts: list[str], told: str) -> None:  # FM-2
    found = complaints(*parts)
    assert any(told in each for each in found), found
    assert all(int(each.partition(":")[0]) > 1 for each in found)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("<JobDefinition/>", "a <JobDefinition> of no namespace"),
        ('<JobDefinition xmlns="urn:wrong"/>', "'urn:wrong'"),
        (f'<JobDescription xmlns="{JSDL}"/>', "this is a <JobDescription>"),
        (f'<JobDefinition xmlns="{JSDL}"/>', "has no <JobDescription>"),
        (f'<JobDefinition xmlns="{JSDL}"><JobDescription/><x xmlns="urn:x"/></JobDefinition>', "<x> of 'urn:x'"),
        ("no XML", "this is not XML"),
        (f'<!DOCTYPE a SYSTEM "http://127.0.0.1:1/x"><JobDefinition xmlns="{JSDL}"/>', "a document type is not taken"),
        (document(RUN).replace(POSIX, SPMD), "SPMDApplication"),
    ],
)
def test_what_is_no_job_description_is_refused(text: str, told: str) -> None:  # FM-2
    found = refused(text)
    assert any(told in each for each in found), found


def test_all_problems_of_a_document_are_told_at_once_from_its_top_to_its_bottom() -> None:
    parts = [staging("a", flag="append", source="urn:a"), program("a;b"), resources("<TotalCPUTime/>")]
    assert [each.partition(":")[0] for each in complaints(*parts)] == ["2", "2", "3", "4"]


WSS = "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-secext-1.0.xsd"


def credential(inner: str) -> str:
    return f'<c:Credential xmlns:c="http://schemas.ogf.org/hpcp/2007/11/ac" xmlns:w="{WSS}">{inner}</c:Credential>'


@pytest.mark.parametrize(
    ("source", "inner", "told"),
    [
        ("file:///a", "<w:UsernameToken><w:Username>u</w:Username></w:UsernameToken>", "takes no user and password"),
        ("ftp://me@h/a", "<w:UsernameToken><w:Username>u</w:Username></w:UsernameToken>", "say it once"),
        ("ftp://h/a", "<w:UsernameToken/>", "no <Username>"),
        ("ftp://h/a", "", "this one has 0"),
        ("ftp://h/a", "<w:BinarySecurityToken/>", "<BinarySecurityToken> is no credential that can be honoured"),
        (
            "ftp://h/a",
            "<w:UsernameToken><w:Username>u</w:Username><w:Password Type='#PasswordDigest'>hush</w:Password>"
            "</w:UsernameToken>",
            "not plain text",
        ),
    ],
)
def test_a_credential_that_nobody_can_log_in_with_is_refused_and_not_repeated(
    source: str, inner: str, told: str
) -> None:  # FM-2
    found = complaints(RUN, staging("a", source=source, more=credential(inner)))
    assert any(told in each for each in found), found
    assert not any("hush" in each for each in found)
