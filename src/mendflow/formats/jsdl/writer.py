"""Writes a job as JSDL. The result is read back first: it describes the same job, or is refused.

A command that is the line of a program is written as that program. Any other is written as a shell with the text as an
argument or, since an argument cannot contain a newline, in its environment."""

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from lxml import etree
from msgspec.structs import replace

from mendflow.core.expressions import plain_text
from mendflow.core.model.data import LOGICAL_PREFIX
from mendflow.core.model.errors import BadFlow, Problem
from mendflow.core.model.flow import Flow, JobActivity
from mendflow.core.model.shells import DEFAULT_SHELL, PLAIN_SHELL
from mendflow.core.xml import ParsedElement
from mendflow.formats.jsdl.capabilities import only_job
from mendflow.formats.jsdl.document import read_document
from mendflow.formats.jsdl.program import EVALUATED, SCRIPT, SHELL_WORDS, Program, program_of
from mendflow.formats.jsdl.vocabulary import JSDL, LIMITS, POSIX, SYSTEMS

NAMESPACES: Final = {None: JSDL, "jsdl-posix": POSIX}
LIMITS_ORDER: Final = (
    "FileSizeLimit",
    "CoreDumpLimit",
    "DataSegmentLimit",
    "LockedMemoryLimit",
    "OpenDescriptorsLimit",
    "StackSizeLimit",
    "CPUTimeLimit",
    "ProcessCountLimit",
    "VirtualMemoryLimit",
)


def write_jsdl(flow: Flow) -> str:
    """The description of a flow's only job. Raises BadFlow with all that JSDL cannot say."""
    job = only_job(flow)
    for program, shell, script in _program_forms(text_of(job.command or ":"), job.shell or "bash"):
        try:
            text = _description(flow, job, program, script)
            body = read_document(text, Path(flow.folder, f"{flow.name}.jsdl")).body
            if body == replace(job, label="", unstaged=(), shell=shell):
                return text
        except (ValueError, BadFlow):
            continue  # a character that XML cannot hold, or a path that can be said only in another way
    raise BadFlow(
        problems=[Problem(message=f"{job.name}: JSDL cannot say its command, its files or its texts as they are")]
    )


def _program_forms(command: str, shell: str) -> Iterator[tuple[Program | None, str, str]]:
    """Programs that are the command, the plainest first; the shell that such a document is read with, and the text that
    one finds in its environment. Every shell runs the line of a program alike."""
    if command == ":":
        yield None, DEFAULT_SHELL, ""
    if (program := program_of(command)) is not None:
        yield program, PLAIN_SHELL, ""
    if shell in SHELL_WORDS:
        executable, *before = SHELL_WORDS[shell]
        yield Program(executable=executable, arguments=(*before, shlex.quote(command))), shell, ""
        yield Program(executable=executable, arguments=(*before, shlex.quote(EVALUATED))), shell, command


def text_of(template: Any) -> str:
    found = plain_text(template)
    assert found is not None, "expressions were refused before"
    return found


def _description(flow: Flow, job: JobActivity, program: Program | None, script: str) -> str:
    root = etree.Element(f"{{{JSDL}}}JobDefinition", nsmap=NAMESPACES)
    description = etree.SubElement(root, f"{{{JSDL}}}JobDescription")
    identification = _add(description, "JobIdentification")
    _add(identification, "JobName", str(flow.name))
    if flow.description.strip():
        _add(identification, "Description", flow.description.strip())
    if program is not None:
        _application(_add(description, "Application"), flow, job, program, script)
    resources = _add(description, "Resources")
    _resources(resources, job)
    if not len(resources):
        description.remove(resources)
    _staging(description, job, program)
    return etree.tostring(root, pretty_print=True, xml_declaration=True, encoding="UTF-8").decode()


def _add(parent: ParsedElement, name: str, text: str | None = None, namespace: str = JSDL) -> ParsedElement:
    made = etree.SubElement(parent, f"{{{namespace}}}{name}")
    if text is not None:
        made.text = text
    return made


def _application(parent: ParsedElement, flow: Flow, job: JobActivity, program: Program, script: str) -> None:
    at = _add(parent, "POSIXApplication", namespace=POSIX)
    if job.name != flow.name:
        at.set("name", job.name)

    def say(name: str, word: str) -> None:
        if word:
            _add(at, name, shlex.split(word)[0], POSIX)

    say("Executable", program.executable)
    for argument in program.arguments:
        _add(at, "Argument", shlex.split(argument)[0], POSIX)
    say("Input", program.input)
    say("Output", program.output)
    say("Error", program.error)
    say("WorkingDirectory", program.folder)
    env = {text_of(name): text_of(value) for name, value in job.env.items()} | ({SCRIPT: script} if script else {})
    for name, value in env.items():
        _add(at, "Environment", value, POSIX).set("name", name)
    if job.resources.wall_ms:
        _add(at, "WallTimeLimit", str(job.resources.wall_ms // 1000), POSIX)
    for limit in LIMITS_ORDER:
        amount = getattr(job.limits, LIMITS[limit])
        if amount or (amount == 0 and LIMITS[limit] == "core_bytes"):
            _add(at, limit, str(amount // 1000 if limit == "CPUTimeLimit" else amount), POSIX)


def _resources(parent: ParsedElement, job: JobActivity) -> None:
    needs = job.resources
    if needs.hosts:
        hosts = _add(parent, "CandidateHosts")
        for host in needs.hosts:
            _add(hosts, "HostName", text_of(host))
    if needs.system:
        kind = _add(_add(parent, "OperatingSystem"), "OperatingSystemType")
        _add(kind, "OperatingSystemName", next(name for name, system in SYSTEMS.items() if system == needs.system))
    if needs.machine:
        _add(_add(parent, "CPUArchitecture"), "CPUArchitectureName", needs.machine)
    if needs.cpus != 1:
        _add(_add(parent, "IndividualCPUCount"), "Exact", str(int(needs.cpus)))
    for name, amount in (("IndividualPhysicalMemory", needs.memory_bytes), ("IndividualDiskSpace", needs.disk_bytes)):
        if amount:
            _add(_add(parent, name), "LowerBoundedRange", str(int(amount)))


def _staging(parent: ParsedElement, job: JobActivity, program: Program | None) -> None:
    """With a working directory, files are named in the job's own folder, which is scratch."""
    elsewhere = program is not None and bool(program.folder)
    outputs = {text_of(path): name for name, path in job.files.items() if name in job.publish}
    for path in dict.fromkeys([*job.inputs, *outputs]):
        at = _add(parent, "DataStaging")
        if path in outputs:
            at.set("name", outputs[path])
        _add(at, "FileName", path)
        if elsewhere:
            _add(at, "FilesystemName", "SCRATCH")
        publishing = job.publish[outputs[path]] if path in outputs else None
        overwrite = publishing is None or publishing.overwrite
        _add(at, "CreationFlag", "overwrite" if overwrite else "dontOverwrite")
        if path in job.inputs:
            _add(_add(at, "Source"), "URI", text_of(job.inputs[path]))
        if publishing is not None:
            url = publishing.url or LOGICAL_PREFIX + publishing.logical.removeprefix(LOGICAL_PREFIX)
            _add(_add(at, "Target"), "URI", text_of(url))
