"""Programs of several processes, as far as one pilot can run them: all on its machine, started by its own mpiexec; and
threads of one process, which are told their number."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from mendflow.core.xml import Node
from mendflow.formats.jsdl.reading import Reading, local, namespace, shown
from mendflow.formats.jsdl.vocabulary import GRIDSAM_MPI, SPMD

PROCESSES: Final = "actualtotalcpucount"
THREADS: Final = "actualindividualcpucount"
LAUNCHED: Final = "MPI"
THREADED: Final = "OpenMP"


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """How many processors a program needs for its processes and threads, and what starts it."""

    cpus: int = 0
    launcher: tuple[str, ...] = ()
    env: dict[str, str] = {}


def spread_of(reading: Reading, form: Node, parts: Mapping[str, Sequence[Node]], cpus: int) -> Spread:
    """`cpus` is what its resources ask for, which the numbers may be said to be."""
    if namespace(form) == GRIDSAM_MPI:
        count = [reading.count(each) for each in parts.get("ProcessorCount", [])]
        return _started((count or [1])[0], 1)
    if namespace(form) != SPMD:
        return Spread()
    processes = _number(reading, parts.get("NumberOfProcesses", []), PROCESSES, cpus)
    threads = _number(reading, parts.get("ThreadsPerProcess", []), THREADS, cpus)
    for each in parts.get("ProcessesPerHost", []):
        here = reading.count(each)
        if processes and here < processes:
            reading.problem(
                each,
                f"<ProcessesPerHost> cannot be honoured: a job has one machine, where all {processes} processes run; "
                "leave it away, or let it be as many",
            )
        processes = processes or here
    kind = _variation(reading, form, parts)
    if kind == THREADED:
        if processes > 1:
            reading.problem(parts["NumberOfProcesses"][0], "a program of OpenMP is one process: say ThreadsPerProcess")
        return Spread(cpus=threads, env=_told(threads))
    return _started(processes or 1, threads) if kind == LAUNCHED else Spread()


def _started(processes: int, threads: int) -> Spread:
    return Spread(
        cpus=processes * max(1, threads),
        launcher=("mpiexec", "-n", str(processes)),
        env=_told(threads) if threads > 1 else {},
    )


def _told(threads: int) -> dict[str, str]:
    return {"OMP_NUM_THREADS": str(threads)} if threads else {}


def _number(reading: Reading, given: Sequence[Node], actual: str, cpus: int) -> int:
    """A number, or as many as there are processors, if it says so; 0 if it is not given."""
    if not given:
        return 0
    if given[0].get(actual, "").strip() in ("true", "1"):
        reading.text(given[0], actual)
        return cpus
    return reading.count(given[0], actual)


def _variation(reading: Reading, form: Node, parts: Mapping[str, Sequence[Node]]) -> str:
    given = parts.get("SPMDVariation", [])
    if not given:
        reading.problem(form, f"<{local(form)}> has no <SPMDVariation>: say which kind of program it is")
        return ""
    text = reading.word(given[0])
    kind = text.rpartition("/")[2]
    if kind not in (LAUNCHED, THREADED) and text:
        reading.problem(
            given[0],
            f"<SPMDVariation> {shown(text)} cannot be honoured: a pilot starts processes with its own mpiexec; "
            f"say .../{LAUNCHED}, or .../{THREADED} for threads",
        )
    return kind
