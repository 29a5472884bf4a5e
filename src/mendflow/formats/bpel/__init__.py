"""Reads WS-BPEL 2.0 processes, with their WSDL 1.1 and XML Schema files, as flows."""

from pathlib import Path

from mendflow.core.model.errors import BadFlow, Problem
from mendflow.core.model.flow import Flow
from mendflow.formats.bpel.analysis import analyse, differences_in, flaws_in
from mendflow.formats.bpel.definitions import Definitions
from mendflow.formats.bpel.process import ParsedProcess, flow_of, parse_process
from mendflow.formats.bpel.reader import SourceDocument
from mendflow.formats.files import flow_bytes

__all__ = [
    "BPEL_ENDING",
    "Definitions",
    "ParsedProcess",
    "SourceDocument",
    "expression_flaws",
    "load_bpel",
    "parse_bpel",
    "read_bpel",
    "xpath2_differences",
]

BPEL_ENDING = ".bpel"
UNDEFINED = "SA00010"


def load_bpel(path: str | Path, *, xpath2_as_1: bool = False) -> Flow:
    """The flow of a file; what is in XPath 2.0 may be read as XPath 1.0. Raises BadFlow with all that is wrong."""
    return read_bpel(flow_bytes(Path(path), str(path)), path, str(path), xpath2_as_1=xpath2_as_1)


def read_bpel(
    data: bytes | str, path: str | Path = "process.bpel", file_name: str = "", *, xpath2_as_1: bool = False
) -> Flow:
    """The flow of a text at this (perhaps hypothetical) path."""
    given = parse_bpel(data, path, file_name, xpath2_as_1=xpath2_as_1)
    flow = flow_of(given)
    if problems := _check_process(given):
        raise BadFlow(problems=problems)
    return flow


def parse_bpel(
    data: bytes | str, path: str | Path = "process.bpel", file_name: str = "", *, xpath2_as_1: bool = False
) -> ParsedProcess:
    """The process and the definitions of its imports, not yet validated."""
    return parse_process(data, Path(path), file_name or str(path), xpath2_as_1=xpath2_as_1)


def expression_flaws(path: str | Path, *, xpath2_as_1: bool = False) -> list[Problem]:
    """Expressions of a process that can never be evaluated, each a fault when it is. Raises BadFlow for no process."""
    return flaws_in(parse_bpel(flow_bytes(Path(path), str(path)), path, xpath2_as_1=xpath2_as_1))


def xpath2_differences(path: str | Path) -> list[Problem]:
    """Expressions of a process in XPath 2.0 that may mean something else as XPath 1.0."""
    return differences_in(parse_bpel(flow_bytes(Path(path), str(path)), path))


def _check_process(given: ParsedProcess) -> list[Problem]:
    """All problems, in order. If the reader and a rule of the specification complain about the same line, only the
    rule's number is reported."""
    read = {(each.file, each.line, _rule_number(each)) for each in given.problems}
    places = {(file, line) for file, line, _ in read}
    rules = [each for each in analyse(given) if _is_new_problem(each, read, places)]
    numbered = {(each.file, each.line) for each in rules if _rule_number(each)}
    others = [each for each in given.problems if _rule_number(each) or (each.file, each.line) not in numbered]
    missing = [f"{{{space}}}" for space in given.definitions.missing if space]
    news = [each for each in (*rules, *others) if not _is_consequence(each, missing)]
    return sorted(news, key=lambda each: (each.file, each.line))


def _is_consequence(problem: Problem, missing: list[str]) -> bool:
    """Whether it only says that something is undefined whose file could not be read, which is reported already."""
    return _rule_number(problem) == UNDEFINED and any(space in problem.message for space in missing)


def _is_new_problem(found: Problem, read: set[tuple[str, int, str]], places: set[tuple[str, int]]) -> bool:
    place = (found.file, found.line)
    return (*place, _rule_number(found)) not in read if _rule_number(found) else place not in places


def _rule_number(problem: Problem) -> str:
    """The number of its rule; empty if it has none."""
    number, colon, _ = problem.message.partition(": ")
    return number if colon and number.startswith("SA") else ""
