"""<Resources>: which machines a job may use, and how much of them. A pilot is one machine, so individual and total
amounts are the same."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from mendflow.core.expressions import literal
from mendflow.core.model.templates import ResourceTemplates
from mendflow.core.xml import ParsedElement
from mendflow.formats.jsdl.file_systems import FileSystems, chosen_amount
from mendflow.formats.jsdl.ranges import Range, contains, range_of
from mendflow.formats.jsdl.reader import JsdlReader, abbreviate
from mendflow.formats.jsdl.vocabulary import MACHINES, MANY, OTHER_SYSTEMS, RANGES, REFUSED_RESOURCES, SYSTEMS
from mendflow.formats.spelling import nearest_word

PARTS: Final = {
    "CandidateHosts": 1,
    "FileSystem": MANY,
    "ExclusiveExecution": 1,
    "OperatingSystem": 1,
    "CPUArchitecture": 1,
    **dict.fromkeys(RANGES, 1),
}


class ResourceRequest(msgspec.Struct, kw_only=True):
    """What a document asks for, before the limits of its application are known."""

    resources: ResourceTemplates = ResourceTemplates()
    memory: list[Range] = []
    cpus: list[Range] = []
    at: ParsedElement | None = None


def resource_request(reader: JsdlReader, at: ParsedElement | None, systems: FileSystems) -> ResourceRequest:
    if at is None:
        return ResourceRequest()
    reader.attributes(at)
    parts = reader.parts(at, PARTS, REFUSED_RESOURCES)
    for each in parts.get("FileSystem", []):
        systems.describe(each)
    for each in parts.get("ExclusiveExecution", []):
        if reader.truth(each):
            reader.problem(
                each,
                "<ExclusiveExecution> cannot be honoured: pilots of others may be on the same machine; "
                "ask for all its processors with IndividualCPUCount",
            )
    ranges = {name: found for name in RANGES for each in parts.get(name, []) if (found := range_of(reader, each))}
    one = [ranges["TotalResourceCount"]] if "TotalResourceCount" in ranges else []
    if not contains(one, 1):
        reader.problem(
            parts["TotalResourceCount"][0],
            "<TotalResourceCount> cannot be honoured: a job has one machine; describe a job for each, or leave it away",
        )
    cpus = _cpu_ranges(ranges, "IndividualCPUCount", "TotalCPUCount")
    resources = ResourceTemplates(
        cpus=float(chosen_amount(reader, _first_part(parts, "IndividualCPUCount", "TotalCPUCount"), cpus, 1))
        if cpus
        else 1.0,
        disk_bytes=_disk(reader, parts, ranges, systems),
        hosts=_hosts(reader, parts.get("CandidateHosts", [])),
        system=_system(reader, parts.get("OperatingSystem", [])),
        machine=_machine(reader, parts.get("CPUArchitecture", [])),
    )
    memory = _cpu_ranges(ranges, "IndividualPhysicalMemory", "TotalPhysicalMemory")
    if memory:
        named = _first_part(parts, "IndividualPhysicalMemory", "TotalPhysicalMemory")
        resources = msgspec.structs.replace(resources, memory_bytes=chosen_amount(reader, named, memory))
    return ResourceRequest(resources=resources, memory=memory, cpus=cpus, at=at)


def _cpu_ranges(ranges: Mapping[str, Range], *names: str) -> list[Range]:
    return [ranges[name] for name in names if name in ranges]


def _first_part(parts: Mapping[str, Sequence[ParsedElement]], *names: str) -> ParsedElement:
    return next(parts[name][0] for name in names if parts.get(name))


def _disk(
    reader: JsdlReader, parts: Mapping[str, Sequence[ParsedElement]], ranges: Mapping[str, Range], systems: FileSystems
) -> int:
    """What is asked for in all; that of single file systems is a part of it."""
    names = ("IndividualDiskSpace", "TotalDiskSpace")
    wanted = _cpu_ranges(ranges, *names)
    return max(systems.disk_bytes, chosen_amount(reader, _first_part(parts, *names), wanted) if wanted else 0)


def _hosts(reader: JsdlReader, given: Sequence[ParsedElement]) -> tuple[str, ...]:
    if not given:
        return ()
    reader.attributes(given[0])
    names = [reader.word(each) for each in reader.parts(given[0], {"HostName": MANY}).get("HostName", [])]
    if not names:
        reader.problem(given[0], "<CandidateHosts> names no host: give it a <HostName>, or leave it away")
    return tuple(dict.fromkeys(literal(name) for name in names if name))


def _system(reader: JsdlReader, given: Sequence[ParsedElement]) -> str:
    if not given:
        return ""
    reader.attributes(given[0])
    refused = {"OperatingSystemVersion": "pilots do not tell which version they run: name hosts with CandidateHosts"}
    parts = reader.parts(given[0], {"OperatingSystemType": 1, "Description": 1}, refused)
    for each in parts.get("Description", []):
        reader.text(each)
    for each in parts.get("OperatingSystemType", []):
        reader.attributes(each)
        for name in reader.parts(each, {"OperatingSystemName": 1}).get("OperatingSystemName", []):
            word = reader.word(name)
            if word in SYSTEMS:
                return SYSTEMS[word]
            _refuse_system(reader, name, word)
    return ""


def _refuse_system(reader: JsdlReader, at: ParsedElement, word: str) -> None:
    if word in OTHER_SYSTEMS:
        run = ", ".join(sorted(SYSTEMS))
        reader.problem(
            at, f"<OperatingSystemName> cannot be honoured: no pilot runs on {abbreviate(word)}; they run on {run}"
        )
    elif word:
        reader.problem(
            at, f"{abbreviate(word)} is no system that JSDL knows", nearest_word(word, [*SYSTEMS, *OTHER_SYSTEMS])
        )


def _machine(reader: JsdlReader, given: Sequence[ParsedElement]) -> str:
    if not given:
        return ""
    reader.attributes(given[0])
    names = reader.parts(given[0], {"CPUArchitectureName": 1}).get("CPUArchitectureName", [])
    if not names:
        reader.problem(given[0], "<CPUArchitecture> names none: give it a <CPUArchitectureName>")
        return ""
    word = reader.word(names[0])
    if word == "other":
        reader.problem(names[0], "<CPUArchitectureName> cannot be honoured: `other` names no kind of machine")
    elif word and word not in MACHINES:
        reader.problem(names[0], f"{abbreviate(word)} is no architecture that JSDL knows", nearest_word(word, MACHINES))
    return word if word in MACHINES else ""
