"""<Resources>: which machines a job may go to, and how much it is given there. A pilot is one machine, so what is said
of each resource and what is said of all together is the same."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from mendflow.core.expressions import literal
from mendflow.core.model.flow import NeededResources
from mendflow.core.xml import Node
from mendflow.formats.jsdl.file_systems import FileSystems, amount
from mendflow.formats.jsdl.ranges import Range, holds, range_of
from mendflow.formats.jsdl.reading import Reading, shown
from mendflow.formats.jsdl.vocabulary import MACHINES, MANY, OTHER_SYSTEMS, RANGES, REFUSED_RESOURCES, SYSTEMS
from mendflow.formats.spelling import nearest

PARTS: Final = {
    "CandidateHosts": 1,
    "FileSystem": MANY,
    "ExclusiveExecution": 1,
    "OperatingSystem": 1,
    "CPUArchitecture": 1,
    **dict.fromkeys(RANGES, 1),
}


class Needs(msgspec.Struct, kw_only=True):
    """What a document asks for, before the limits of its application are known."""

    resources: NeededResources = NeededResources()
    memory: list[Range] = []
    cpus: list[Range] = []
    at: Node | None = None


def needs_of(reading: Reading, at: Node | None, systems: FileSystems) -> Needs:
    if at is None:
        return Needs()
    reading.attributes(at)
    parts = reading.parts(at, PARTS, REFUSED_RESOURCES)
    for each in parts.get("FileSystem", []):
        systems.describe(each)
    for each in parts.get("ExclusiveExecution", []):
        if reading.truth(each):
            reading.problem(
                each,
                "<ExclusiveExecution> cannot be honoured: pilots of others may be on the same machine; "
                "ask for all its processors with IndividualCPUCount",
            )
    ranges = {name: found for name in RANGES for each in parts.get(name, []) if (found := range_of(reading, each))}
    one = [ranges["TotalResourceCount"]] if "TotalResourceCount" in ranges else []
    if not holds(one, 1):
        reading.problem(
            parts["TotalResourceCount"][0],
            "<TotalResourceCount> cannot be honoured: a job has one machine; describe a job for each, or leave it away",
        )
    cpus = _both(ranges, "IndividualCPUCount", "TotalCPUCount")
    resources = NeededResources(
        cpus=float(amount(reading, _named(parts, "IndividualCPUCount", "TotalCPUCount"), cpus, 1)) if cpus else 1.0,
        disk_bytes=_disk(reading, parts, ranges, systems),
        hosts=_hosts(reading, parts.get("CandidateHosts", [])),
        system=_system(reading, parts.get("OperatingSystem", [])),
        machine=_machine(reading, parts.get("CPUArchitecture", [])),
    )
    memory = _both(ranges, "IndividualPhysicalMemory", "TotalPhysicalMemory")
    if memory:
        named = _named(parts, "IndividualPhysicalMemory", "TotalPhysicalMemory")
        resources = msgspec.structs.replace(resources, memory_bytes=amount(reading, named, memory))
    return Needs(resources=resources, memory=memory, cpus=cpus, at=at)


def _both(ranges: Mapping[str, Range], *names: str) -> list[Range]:
    return [ranges[name] for name in names if name in ranges]


def _named(parts: Mapping[str, Sequence[Node]], *names: str) -> Node:
    return next(parts[name][0] for name in names if parts.get(name))


def _disk(
    reading: Reading, parts: Mapping[str, Sequence[Node]], ranges: Mapping[str, Range], systems: FileSystems
) -> int:
    """What is asked for in all; that of single file systems is a part of it."""
    names = ("IndividualDiskSpace", "TotalDiskSpace")
    wanted = _both(ranges, *names)
    return max(systems.disk_bytes, amount(reading, _named(parts, *names), wanted) if wanted else 0)


def _hosts(reading: Reading, given: Sequence[Node]) -> tuple[str, ...]:
    if not given:
        return ()
    reading.attributes(given[0])
    names = [reading.word(each) for each in reading.parts(given[0], {"HostName": MANY}).get("HostName", [])]
    if not names:
        reading.problem(given[0], "<CandidateHosts> names no host: give it a <HostName>, or leave it away")
    return tuple(dict.fromkeys(literal(name) for name in names if name))


def _system(reading: Reading, given: Sequence[Node]) -> str:
    if not given:
        return ""
    reading.attributes(given[0])
    refused = {"OperatingSystemVersion": "pilots do not tell which version they run: name hosts with CandidateHosts"}
    parts = reading.parts(given[0], {"OperatingSystemType": 1, "Description": 1}, refused)
    for each in parts.get("Description", []):
        reading.text(each)
    for each in parts.get("OperatingSystemType", []):
        reading.attributes(each)
        for name in reading.parts(each, {"OperatingSystemName": 1}).get("OperatingSystemName", []):
            word = reading.word(name)
            if word in SYSTEMS:
                return SYSTEMS[word]
            _no_system(reading, name, word)
    return ""


def _no_system(reading: Reading, at: Node, word: str) -> None:
    if word in OTHER_SYSTEMS:
        run = ", ".join(sorted(SYSTEMS))
        reading.problem(
            at, f"<OperatingSystemName> cannot be honoured: no pilot runs on {shown(word)}; they run on {run}"
        )
    elif word:
        reading.problem(at, f"{shown(word)} is no system that JSDL knows", nearest(word, [*SYSTEMS, *OTHER_SYSTEMS]))


def _machine(reading: Reading, given: Sequence[Node]) -> str:
    if not given:
        return ""
    reading.attributes(given[0])
    names = reading.parts(given[0], {"CPUArchitectureName": 1}).get("CPUArchitectureName", [])
    if not names:
        reading.problem(given[0], "<CPUArchitecture> names none: give it a <CPUArchitectureName>")
        return ""
    word = reading.word(names[0])
    if word == "other":
        reading.problem(names[0], "<CPUArchitectureName> cannot be honoured: `other` names no kind of machine")
    elif word and word not in MACHINES:
        reading.problem(names[0], f"{shown(word)} is no architecture that JSDL knows", nearest(word, MACHINES))
    return word if word in MACHINES else ""
