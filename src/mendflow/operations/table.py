"""The table: every operation by its name, and the one that a request asks for.

An operation that goes over HTTP as JSON is declared as a call, in the module of its subject. The few below stream, or
speak something else than JSON: each has a handler and a client's call that are written by hand."""

from functools import cache

from mendflow.core.model.principals import METRICS, PILOT
from mendflow.operations.alerts import AlertCalls, NotificationCalls
from mendflow.operations.audit import AuditCalls
from mendflow.operations.case_views import CaseViewCalls
from mendflow.operations.cases import CaseCalls, HistoryCalls
from mendflow.operations.data import DataCalls
from mendflow.operations.data_sets import DataSetCalls
from mendflow.operations.domains import ConnectionCalls
from mendflow.operations.engines import EngineCalls
from mendflow.operations.flows import FlowCalls
from mendflow.operations.jobs import JobCalls, PilotCalls, ServerCalls
from mendflow.operations.learning import LearningCalls
from mendflow.operations.limits import LimitCalls
from mendflow.operations.operation import ApiOperation, declared_by
from mendflow.operations.projects import ProjectCalls
from mendflow.operations.repairs import RepairCalls
from mendflow.operations.results import ResultCalls
from mendflow.operations.retention import RetentionCalls
from mendflow.operations.roles import ADMINISTRATORS, ANYBODY, OPERATORS, PILOTS, VIEWERS
from mendflow.operations.rule_editor import RuleEditorCalls
from mendflow.operations.rule_sources import SourceCalls
from mendflow.operations.rules import RuleCalls
from mendflow.operations.schedules import ScheduleCalls
from mendflow.operations.secrets import SecretCalls
from mendflow.operations.sessions import SessionCalls
from mendflow.operations.sites import SiteCalls
from mendflow.operations.sizes import SizeCalls
from mendflow.operations.subjects import CASE, FLOW, INSTALLATION, LISTED, STORED_FILE
from mendflow.operations.tokens import TokenCalls
from mendflow.operations.worklist import WorklistCalls

API = "/api/v1"
"""Every path of an operation stands below this one."""

OPTIONS = "OPTIONS"
"""The method by which somebody asks which others an address knows."""


class DomainCalls(
    ServerCalls,
    FlowCalls,
    CaseCalls,
    CaseViewCalls,
    JobCalls,
    ResultCalls,
    PilotCalls,
    AlertCalls,
    NotificationCalls,
    WorklistCalls,
    DataCalls,
    RuleCalls,
    RuleEditorCalls,
    SourceCalls,
    RepairCalls,
    HistoryCalls,
    EngineCalls,
    SiteCalls,
    ConnectionCalls,
    DataSetCalls,
    SizeCalls,
    LearningCalls,
    ScheduleCalls,
    LimitCalls,
    ProjectCalls,
    RetentionCalls,
    SecretCalls,
    TokenCalls,
    SessionCalls,
    AuditCalls,
):
    """Every operation that is declared as a call."""


SPECIAL = (
    ApiOperation(
        "case_events",
        "GET",
        "/cases/{case}/events",
        VIEWERS,
        CASE,
        tag="events",
        streams=True,
        doc="""What happens in a case. Server-sent events; `id` is the serial, `data` a ChangeEvent. The event `end`
        follows the last one of the case.""",
    ),
    ApiOperation(
        "all_events",
        "GET",
        "/events",
        VIEWERS,
        LISTED,
        tag="events",
        streams=True,
        doc="""What happens in all cases. From now on, or after the serial that `Last-Event-ID` says. The event `reset`
        says that the events since then are not kept any more: read everything anew. The stream ends when the token is
        revoked that it was opened by.""",
    ),
    ApiOperation(
        "store_file",
        "PUT",
        "/files/{sha256}",
        OPERATORS | PILOT,
        INSTALLATION,
        tag="files",
        stores_body=True,
        doc="""Store a file on the server. The body is the content. It is refused if it does not have that SHA-256. A
        pilot that can write to the server's folder links the file there instead, and names it by `linked`.""",
    ),
    ApiOperation(
        "read_file",
        "GET",
        "/files/{sha256}",
        VIEWERS | PILOT,
        STORED_FILE,
        tag="files",
        streams=True,
        doc="""A file's content. `of` names a case that the caller can read and that refers to the file; administrators,
        pilots that hold a job with the file, and whoever has sent the file need not say. With `Range: bytes=N-` the
        content from there on, for resumed downloads; any other range is ignored.""",
    ),
    ApiOperation(
        "file_size",
        "HEAD",
        "/files/{sha256}",
        VIEWERS | PILOT,
        STORED_FILE,
        tag="files",
        doc="""Whether a file is stored that the caller may read, and its size. Without `of` it is looked for in the
        newest cases of the caller's projects: what is found need not be sent again.""",
    ),
    ApiOperation(
        "export",
        "GET",
        "/archives",
        OPERATORS,
        LISTED,
        tag="archives",
        audited=True,
        streams=True,
        doc="""An archive of cases. Exports the named cases, those that match the condition, or everything, from
        whichever servers they live on. If one of these servers cannot be asked, there is no archive, or one that lists
        the missing cases. An archive that was cut off has no last line, and every reader refuses it.""",
    ),
    ApiOperation(
        "import_archive",
        "POST",
        "/archives",
        ADMINISTRATORS,
        INSTALLATION,
        tag="archives",
        streams=True,
        stores_body=True,
        doc="""Take the cases of an archive. The body is the archive. It is refused as a whole if anything in it is
        wrong, or if a case exists here with other content.""",
    ),
    ApiOperation(
        "export_audit",
        "GET",
        "/audit/export",
        ADMINISTRATORS,
        INSTALLATION,
        tag="audit",
        audited=True,
        streams=True,
        doc="""The entries of the audit log, as JSON lines. They come chain by chain, the oldest first, byte for byte as
        they are stored: `previous` of a line is the SHA-256 of the line before, without its end.""",
    ),
    ApiOperation(
        "flow_history",
        "GET",
        "/flows/{name}/history",
        VIEWERS,
        FLOW,
        tag="repairs",
        streams=True,
        doc="The histories of a flow's cases, as XES.",
    ),
    ApiOperation(
        "metrics",
        "GET",
        "/metrics",
        VIEWERS | METRICS,
        LISTED,
        tag="server",
        doc="""The server that is asked, for Prometheus. As Prometheus text, or as OpenMetrics where the request accepts
        that. Also served under `/metrics`.""",
    ),
    ApiOperation(
        "sign_in",
        "POST",
        "/session",
        ANYBODY,
        INSTALLATION,
        status=204,
        tag="session",
        doc="""Sign a browser in, by a token or a one-time code. The answer sets the cookie of its session, which ends
        with the token.""",
    ),
    ApiOperation(
        "sign_out",
        "DELETE",
        "/session",
        ANYBODY,
        INSTALLATION,
        status=204,
        tag="session",
        doc="End the session of this browser, on every server.",
    ),
    ApiOperation("openapi", "GET", "/openapi.json", ANYBODY, INSTALLATION, tag="server", doc="This API, described."),
    ApiOperation("docs", "GET", "/docs", ANYBODY, INSTALLATION, tag="server", doc="This API, described for people."),
    ApiOperation(
        "sync",
        "POST",
        "/pilots/sync",
        PILOTS,
        INSTALLATION,
        audited=False,
        tag="pilots",
        doc="A pilot's exchange. Both bodies are MessagePack. The answer is held until there is something to say.",
    ),
    ApiOperation(
        "locate",
        "POST",
        "/pilots/locate",
        PILOTS,
        INSTALLATION,
        audited=False,
        tag="pilots",
        doc="Where files can be read. Both bodies are MessagePack.",
    ),
    ApiOperation(
        "place",
        "POST",
        "/pilots/place",
        PILOTS,
        INSTALLATION,
        audited=False,
        tag="pilots",
        doc="Where outputs go. Both bodies are MessagePack.",
    ),
    ApiOperation(
        "keep_many",
        "POST",
        "/pilots/files",
        PILOTS,
        INSTALLATION,
        audited=False,
        tag="pilots",
        doc="""Store many small files on the server: all, or none if one does not have its SHA-256. Both bodies are
        MessagePack.""",
    ),
)

CALLS = tuple(each for kind in DomainCalls.__mro__ for each in declared_by(kind))
OPERATIONS: dict[str, ApiOperation] = {each.name: each for each in (*CALLS, *SPECIAL)}


class _Node:
    """One part of the paths: what may come after it, and what is asked for where a path ends here."""

    def __init__(self) -> None:
        self.words: dict[str, _Node] = {}
        self.any: _Node | None = None
        self.takes_rest = False
        self.operations: dict[str, ApiOperation] = {}


def find_operation(method: str, path: str) -> ApiOperation | None:
    """What a request to this path asks for, if it asks for anything. A path is read as the router reads it: empty parts
    do not count, a whole path without names comes first, and a word that is written comes before one that is a name."""
    return _at(path).get(method)


def methods_at(path: str) -> list[str]:
    """The methods that a path knows; none if there is nothing at this path."""
    return sorted([*known, OPTIONS]) if (known := _at(path)) else []


def _at(path: str) -> dict[str, ApiOperation]:
    whole, root = _index()
    if (plain := whole.get(path.removeprefix("/"))) is not None:
        return plain
    words = [word for word in path.split("/") if word]
    if (plain := whole.get("/".join(words))) is not None:
        return plain
    node = root
    for word in words:
        if word in node.words:
            node = node.words[word]
        elif node.any is not None:
            node = node.any
            if node.takes_rest:
                break
        else:
            return {}
    return node.operations


@cache
def _index() -> tuple[dict[str, dict[str, ApiOperation]], _Node]:
    """The paths without names, and those with names as a tree."""
    whole: dict[str, dict[str, ApiOperation]] = {}
    root = _Node()
    for operation in OPERATIONS.values():
        path = f"{API}{operation.path}".strip("/")
        if not operation.placeholders:
            whole.setdefault(path, {})[operation.method] = operation
            continue
        node = root
        for word in path.split("/"):
            if word.startswith("{"):
                node.any = node.any or _Node()
                node = node.any
                node.takes_rest = node.takes_rest or word.endswith(":path}")
            else:
                node = node.words.setdefault(word, _Node())
        node.operations[operation.method] = operation
    return whole, root
