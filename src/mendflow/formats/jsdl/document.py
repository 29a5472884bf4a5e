"""Reads a whole document: the result is a flow of one job, or of the jobs of its sweep, or the list of everything that
is not supported."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from mendflow.core.expressions import literal
from mendflow.core.expressions.work_budget import LongWork
from mendflow.core.model.flow import Flow, JobActivity
from mendflow.core.model.ids import FlowName
from mendflow.core.model.templates import PublicationTemplate, ResourceTemplates
from mendflow.core.xml import ParsedElement, parse
from mendflow.formats.jsdl.application import Application, ApplicationSpec
from mendflow.formats.jsdl.file_systems import FileSystems
from mendflow.formats.jsdl.ranges import contains
from mendflow.formats.jsdl.reader import JsdlReader, elements, local, namespace
from mendflow.formats.jsdl.resources import ResourceRequest, resource_request
from mendflow.formats.jsdl.staging import JsdlStaging, staged_files
from mendflow.formats.jsdl.sweep import JOBS_MAX, Sweep, combinations, edited, read_sweeps
from mendflow.formats.jsdl.swept_jobs import swept_flow
from mendflow.formats.jsdl.vocabulary import JSDL, MANY, SWEEP
from mendflow.formats.names import NAME, NAME_CHARS_MAX

IDENTIFICATION: Final = {"JobName": 1, "Description": 1, "JobAnnotation": MANY, "JobProject": MANY}
DESCRIPTION: Final = {"JobIdentification": 1, "Application": 1, "Resources": 1, "DataStaging": MANY}
STREAMS: Final = ("output", "error")
UNNAMED: Final = "job"


def read_document(data: bytes | str, path: Path, file_name: str = "") -> Flow:
    """The flow of a document that stands, or would stand, at this path. Raises BadFlow."""
    file_name = file_name or str(path)
    return flow_of(parse(data, file_name), file_name, path.parent, path.stem)


WRITTEN_OUT_MAX: Final = 200_000
"""Elements of all jobs of a sweep: reading them takes seconds."""


def flow_of(
    root: ParsedElement, file: str, folder: Path | None, stem: str = UNNAMED, *, elements_max: int | None = None
) -> Flow:
    """The flow of a JobDefinition. `stem` is what it is called if it has no name; without a `folder` it stands nowhere,
    and names no files beside it. Raises LongWork if more elements than `elements_max` would be written out."""
    reader = JsdlReader(file, folder)
    if (namespace(root), local(root)) != (JSDL, "JobDefinition"):
        whose = f"of {namespace(root)!r:.100}" if namespace(root) else "of no namespace"
        reader.problem(root, f"a job description is a <JobDefinition> of {JSDL}, and this is a <{local(root)}> {whose}")
        reader.end()
    reader.attributes(root, "id")
    parts = reader.parts(root, {"JobDescription": 1, "Sweep": MANY}, namespaces=(SWEEP,))
    given = parts.get("JobDescription", [])
    if not given:
        reader.problem(root, "<JobDefinition> has no <JobDescription>")
        reader.end()
    sweeps = read_sweeps(reader, parts.get("Sweep", []), root, given[0])
    if (jobs := sum(each.size for each in sweeps)) > JOBS_MAX:
        reader.problem(root, f"the sweep gives {jobs:,} jobs; at most {JOBS_MAX:,} are taken: split the document")
    elif (written := jobs * sum(1 for _ in given[0].iter())) > WRITTEN_OUT_MAX:
        reader.problem(
            root,
            f"the sweep's {jobs:,} jobs have {written:,} elements, each written out; at most {WRITTEN_OUT_MAX:,} are"
            " taken: split the document, or give the arguments that all jobs share in a file",
        )
    reader.end()
    if sweeps:
        if elements_max is not None and written > elements_max:
            raise LongWork
        return _swept(reader, root, given[0], sweeps, stem)
    flow = _flow_from(reader, given[0], stem)
    reader.end()
    return flow


def _swept(
    reader: JsdlReader, root: ParsedElement, described: ParsedElement, sweeps: Sequence[Sweep], stem: str
) -> Flow:
    """The flow of all jobs of a sweep. The first one that cannot be read is refused, with its number."""
    flows = []
    for number, edits in enumerate(combinations(sweeps), start=1):
        one = JsdlReader(f"{reader.file} (job {number} of its sweep)", reader.folder)
        flows.append(_flow_from(one, edited(described, edits), stem))
        one.end()
    name, _ = _identification(
        reader, [each for each in elements(described) if (namespace(each), local(each)) == (JSDL, "JobIdentification")]
    )
    reader.end()
    title = name_of(name or stem)
    jobs = [flow.body for flow in flows if isinstance(flow.body, JobActivity)]
    _demand_own_targets(reader, root, jobs)
    return swept_flow(title, jobs, replace(flows[0], name=FlowName(title)))


def _demand_own_targets(reader: JsdlReader, root: ParsedElement, jobs: Sequence[JobActivity]) -> None:
    """Refuse jobs that write over each other's files: only what the last one left would remain."""
    writers: dict[str, int] = {}
    for number, job in enumerate(jobs, start=1):
        for target in job.publish.values():
            url = target.url if target.overwrite else ""
            if url and writers.setdefault(url, number) != number:
                both = f"jobs {writers[url]} and {number} of the sweep"
                reader.problem(root, f"{both} write to the same <Target>, one over the other: sweep its <URI> as well")
                reader.end()


def _flow_from(reader: JsdlReader, at: ParsedElement, stem: str) -> Flow:
    reader.attributes(at)
    parts = reader.parts(at, DESCRIPTION)
    name, words = _identification(reader, parts.get("JobIdentification", []))
    systems = FileSystems(reader)
    needs = resource_request(reader, next(iter(parts.get("Resources", [])), None), systems)
    application = Application(reader, systems, int(needs.resources.cpus))
    form, notes = application.form(next(iter(parts.get("Application", [])), None))
    folder = application.folder(form)
    staged = staged_files(reader, parts.get("DataStaging", []), systems, folder)
    applied = application.applied(form, folder, tuple(staged.inputs))
    resources = _within_limits(reader, needs, applied)
    title = name_of(name or stem)
    job = _job(title if not applied.name else name_of(applied.name), applied, staged, resources)
    return Flow(
        name=FlowName(title),
        body=job,
        outputs={stream: f"${{{{ jobs.{job.name}.files.{stream} }}}}" for stream in STREAMS if stream in job.files},
        description="\n".join([*words, *notes]),
        folder=str(reader.folder) if reader.folder is not None else "",
    )


def _identification(reader: JsdlReader, given: Sequence[ParsedElement]) -> tuple[str, list[str]]:
    """The job's name, and all that people may want to read of it."""
    if not given:
        return "", []
    reader.attributes(given[0])
    parts = reader.parts(given[0], IDENTIFICATION)
    names = [reader.text(each).strip() for each in parts.get("JobName", [])]
    words = [reader.text(each).strip() for each in parts.get("Description", [])]
    words += _label_lines("annotation: ", reader, parts.get("JobAnnotation", []))
    words += _label_lines("project: ", reader, parts.get("JobProject", []))
    return (names or [""])[0], [each for each in words if each]


def _label_lines(label: str, reader: JsdlReader, given: Iterable[ParsedElement]) -> list[str]:
    return [label + text for each in given if (text := reader.text(each).strip())]


def _within_limits(reader: JsdlReader, needs: ResourceRequest, applied: ApplicationSpec) -> ResourceTemplates:
    """What is asked for, within the limits of the application. Memory is given and bounded by one amount."""
    resources = replace(needs.resources, wall_ms=applied.wall_ms)
    at = applied.at if applied.at is not None else needs.at
    if (limit := applied.memory_limit) and at is not None:
        if resources.memory_bytes > limit:
            reader.problem(at, f"<MemoryLimit> of {limit} bytes is less than what <Resources> asks for")
        elif contains(needs.memory, limit):
            resources = replace(resources, memory_bytes=limit)
    wanted = applied.spread.cpus
    if wanted > resources.cpus and at is not None:
        if not contains(needs.cpus, wanted):
            reader.problem(at, f"its processes and threads need {wanted} processors, which <Resources> does not allow")
        resources = replace(resources, cpus=float(wanted))
    return resources


def _job(name: str, applied: ApplicationSpec, staged: JsdlStaging, resources: ResourceTemplates) -> JobActivity:
    """Streams that are taken nowhere are kept, so that they can be read."""
    files: dict[str, Any] = {}
    publish: dict[str, PublicationTemplate] = {}
    for stream, path in applied.files.items():
        if path not in staged.targets and path not in files.values():
            files[stream] = literal(path)
    for path, target in staged.targets.items():
        key = staged.names[path]
        files[key], publish[key] = literal(path), target
    return JobActivity(
        name=name,
        command=applied.command,
        shell=applied.shell,
        env=applied.env,
        inputs={**staged.inputs},
        files=files,
        publish=publish,
        resources=resources,
        limits=applied.limits,
    )


def name_of(text: str) -> str:
    """A name that flows and jobs may have, as near to the text as can be."""
    name = re.sub(r"[^A-Za-z0-9_]+", "-", text).strip("-")[:NAME_CHARS_MAX].rstrip("-")
    if name and NAME.fullmatch(name):
        return name
    return f"{UNNAMED}-{name}" if name else UNNAMED
