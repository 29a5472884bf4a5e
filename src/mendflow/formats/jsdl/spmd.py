"""Programs of several processes, as far as one pilot can run them: all on its machine, started by its own mpiexec; and
threads of one process, which get their number."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from mendflow.core.xml import ParsedElement
from mendflow.formats.jsdl.reader import JsdlReader, abbreviate, local, namespace
from mendflow.formats.jsdl.vocabulary import GRIDSAM_MPI, SPMD

PROCESSES: Final = "actualtotalcpucount"
THREADS: Final = "actualindividualcpucount"
MPI_FORM: Final = "MPI"
OPENMP_FORM: Final = "OpenMP"


class ProcessLayout(msgspec.Struct, frozen=True, kw_only=True):
    """How many processors a program needs for its processes and threads, and what starts it."""

    cpus: int = 0
    launcher: tuple[str, ...] = ()
    env: dict[str, str] = {}


def process_layout(
    reader: JsdlReader, form: ParsedElement, parts: Mapping[str, Sequence[ParsedElement]], cpus: int
) -> ProcessLayout:
    """`cpus` is what its resources ask for, which the numbers may be said to be."""
    if namespace(form) == GRIDSAM_MPI:
        count = [reader.count(each) for each in parts.get("ProcessorCount", [])]
        return _layout_for((count or [1])[0], 1)
    if namespace(form) != SPMD:
        return ProcessLayout()
    processes = _number(reader, parts.get("NumberOfProcesses", []), PROCESSES, cpus)
    threads = _number(reader, parts.get("ThreadsPerProcess", []), THREADS, cpus)
    for each in parts.get("ProcessesPerHost", []):
        here = reader.count(each)
        if processes and here < processes:
            reader.problem(
                each,
                f"<ProcessesPerHost> cannot be honoured: a job has one machine, where all {processes} processes run; "
                "leave it away, or let it be as many",
            )
        processes = processes or here
    kind = _variation(reader, form, parts)
    if kind == OPENMP_FORM:
        if processes > 1:
            reader.problem(parts["NumberOfProcesses"][0], "a program of OpenMP is one process: say ThreadsPerProcess")
        return ProcessLayout(cpus=threads, env=_thread_env(threads))
    return _layout_for(processes or 1, threads) if kind == MPI_FORM else ProcessLayout()


def _layout_for(processes: int, threads: int) -> ProcessLayout:
    return ProcessLayout(
        cpus=processes * max(1, threads),
        launcher=("mpiexec", "-n", str(processes)),
        env=_thread_env(threads) if threads > 1 else {},
    )


def _thread_env(threads: int) -> dict[str, str]:
    return {"OMP_NUM_THREADS": str(threads)} if threads else {}


def _number(reader: JsdlReader, given: Sequence[ParsedElement], actual: str, cpus: int) -> int:
    """A number, or as many as there are processors, if it says so; 0 if it is not given."""
    if not given:
        return 0
    if given[0].get(actual, "").strip() in ("true", "1"):
        reader.text(given[0], actual)
        return cpus
    return reader.count(given[0], actual)


def _variation(reader: JsdlReader, form: ParsedElement, parts: Mapping[str, Sequence[ParsedElement]]) -> str:
    given = parts.get("SPMDVariation", [])
    if not given:
        reader.problem(form, f"<{local(form)}> has no <SPMDVariation>: say which kind of program it is")
        return ""
    text = reader.word(given[0])
    kind = text.rpartition("/")[2]
    if kind not in (MPI_FORM, OPENMP_FORM) and text:
        reader.problem(
            given[0],
            f"<SPMDVariation> {abbreviate(text)} cannot be honoured: a pilot starts processes with its own mpiexec; "
            f"say .../{MPI_FORM}, or .../{OPENMP_FORM} for threads",
        )
    return kind
