"""Flow files as texts, for an editor that talks to a server and has no files there.

Only YAML is read on a server: to read a flow in Python is to run it, and a process in BPEL needs the documents beside
it. Whatever else a text names stays unread."""

from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Final

from mendflow.core.engine.inserted_inputs import inserted_inputs
from mendflow.core.engine.plan import compile_flow
from mendflow.core.engine.remarks import remarks_on
from mendflow.core.graphs.flow_graph import draw_flow
from mendflow.core.model.errors import BadFlow, InvalidRequest, Problem
from mendflow.core.model.flow_checks import FlowCheck, FlowProblem
from mendflow.core.model.flow_files import FileBeside
from mendflow.core.model.graphs import GraphView
from mendflow.core.model.values import FileRef, Value
from mendflow.formats import YAML, tables
from mendflow.formats.yaml import read_flow_alone
from mendflow.formats.yaml.sent_files import SentFiles

YAML_TABLE_BYTES_MAX: Final = 1_000_000
"""YAML takes a server much longer to read than any other table of the same size."""
NO_FILES: Final[Mapping[str, FileRef]] = {}
ELSEWHERE: Final = "only flow files in YAML are checked on a server; check this one where it is: mendflow check {}"


def check(text: str, name: str, files: Mapping[str, FileRef] = NO_FILES) -> FlowCheck:
    """What is wrong with a text; the flow and its graph if nothing is. `name` is the file's, or the flow's. `files` are
    those beside it that are stored, by their paths or names."""
    file = PurePosixPath(name or "flow").name
    suffix = PurePosixPath(file).suffix
    if suffix and suffix not in YAML and suffix in (".py", ".bpel", ".jsdl", ".xml", ".json"):
        raise InvalidRequest(ELSEWHERE.format(file), field="name")
    file = file if suffix in YAML else f"{file}.yaml"
    sent = SentFiles(files)
    try:
        flow = read_flow_alone(text, file, sent)
        compile_flow(flow)
    except BadFlow as error:
        return FlowCheck(ok=False, problems=[_problem(each) for each in error.problems], beside=_beside(sent))
    remarks = [*remarks_on(flow), *inserted_inputs(flow)]
    found = [_remark(each, sent) for each in remarks]
    drawn = draw_flow(flow)
    graph = GraphView(flow=flow.name, nodes=drawn.nodes, edges=drawn.edges, is_whole=drawn.is_whole)
    return FlowCheck(ok=True, problems=found, flow=flow, graph=graph, beside=_beside(sent))


def _remark(told: str, sent: SentFiles) -> FlowProblem:
    """What is told of a step stands where its command is, or the step."""
    place = sent.places.get(told.partition(": ")[0])
    line, column = (place.line, place.column) if place is not None else (0, 0)
    return FlowProblem(severity="remark", message=told, line=line, column=column)


def _beside(sent: SentFiles) -> list[FileBeside]:
    return [FileBeside(path=path, file=file) for path, file in sent.named.items()]


def read_table(input: str, path: Path, columns: Mapping[str, str]) -> list[Value]:
    """The rows of the table that an input of a case names. Raises InvalidRequest."""
    try:
        if path.suffix in YAML and path.stat().st_size > YAML_TABLE_BYTES_MAX:
            raise InvalidRequest(
                f"input {input}: {path}: a table in YAML that a server reads has 1 MB at most; save it as CSV"
            )
        return tables.read_table(path, columns)
    except tables.BadTable as bad:
        raise InvalidRequest(f"input {input}: {bad.message}") from None
    except OSError as error:
        raise InvalidRequest(f"input {input}: {path} cannot be read: {error.strerror}") from None


def _problem(problem: Problem) -> FlowProblem:
    return FlowProblem(
        line=problem.line, column=problem.column, severity="error", message=problem.message, hint=problem.suggestion
    )
