"""Reads each document of an archive as what its kind says, with the decoder of the service that will read it.

A document that its service cannot read, or that says of itself that it is another, would be found only after it was
imported: when the service starts, or lists what it has. So it is refused here, before anything is written."""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from mendflow.core.data.elements import normalize_element
from mendflow.core.data.paths import name_flaw
from mendflow.core.engine.messages import SendReply
from mendflow.core.model.data import LogicalFile, StorageElement
from mendflow.core.model.errors import RequestError
from mendflow.core.model.ids import CaseId
from mendflow.core.model.jobs import Job
from mendflow.core.model.repair import Decision
from mendflow.core.model.rules import RuleSet
from mendflow.core.recovery.conversation import Conversation
from mendflow.core.recovery.patterns import check_pattern
from mendflow.core.rules.validation import name_problem, shape_problems
from mendflow.core.scheduling import job_events
from mendflow.services.api.archive.kinds import FLOW_VERSION_KIND
from mendflow.services.api.archive.records import BadArchive
from mendflow.services.base.cluster import CASE_KIND, JOB_KIND, root_of
from mendflow.services.cases.flow_file_store import FLOW_FILE_KIND, FlowFileDocument, id_of
from mendflow.services.cases.flows import FLOW_KIND, FlowDocument, check_names
from mendflow.services.cases.live_case import ITEM_KIND, RUNS_KIND, CaseDocument, ItemDocument, ItemRuns
from mendflow.services.cases.order_dispatcher import REPLY_KIND
from mendflow.services.cases.user_tasks import TASK_KIND, TaskDocument
from mendflow.services.data.catalogue.elements import STORAGE_KIND
from mendflow.services.data.catalogue.files import FILE_KIND
from mendflow.services.data.catalogue.holds import PLACE_KIND, PlaceDocument, StoragePlace
from mendflow.services.domains.router import ROUTE_KIND, RouteDocument
from mendflow.services.messaging.callbacks import CALLBACK_KIND, CallbackDocument
from mendflow.services.messaging.message_store import (
    ENDPOINT_KIND,
    MESSAGE_KIND,
    MESSAGE_REPLY_KIND,
    EndpointDocument,
    MessageDocument,
    ReplyDocument,
    endpoint_of,
)
from mendflow.services.recovery.decisions import DECISION_KIND, OPEN_DECISION_KIND, OpenMarker
from mendflow.services.recovery.levels import LEVEL_KIND, LevelEntry
from mendflow.services.recovery.proxy.conversations import CONVERSATION_KIND
from mendflow.services.recovery.proxy.patterns import PATTERN_KIND, StoredPattern
from mendflow.services.recovery.rules.store import RULES_KIND, VERSION_KIND, version_id
from mendflow.services.recovery.settled_cases import PRUNED_RUNS_KIND, PrunedRuns
from mendflow.services.recovery.unwinding import COMPENSATION_KIND, Compensation


class _Form(NamedTuple):
    """`id_of` gives the id that a document has by what is in it, None where nothing in it says so. `case_of` gives the
    case that it is about, which is one of its tree. `problem_of` says what else is wrong with it."""

    decode: Callable[[bytes], Any]
    id_of: Callable[[Any], str | None]
    case_of: Callable[[Any], str | None]
    problem_of: Callable[[Any], str]


def _form(
    type: Any,
    id_of: Callable[[Any], str | None] = lambda found: found.id,
    case_of: Callable[[Any], str | None] = lambda _found: None,
    problem_of: Callable[[Any], str] = lambda _found: "",
) -> _Form:
    return _Form(msgspec.json.Decoder(type).decode, id_of, case_of, problem_of)


def _id_of_pattern(pattern: StoredPattern) -> str:
    names = {each.name for each in (pattern.conversation, pattern.repair) if each is not None}
    return names.pop() if len(names) == 1 else ""


def _problem_of_pattern(pattern: StoredPattern) -> str:
    return check_pattern(pattern.conversation.messages) if pattern.conversation is not None else ""


def _problem_of_rules(rules: RuleSet) -> str:
    """Whoever walks through a tree relies on its shape: it would walk in a circle for ever."""
    if problem := name_problem(rules.name):
        return problem
    trees = [tree for trees in rules.trees.values() for tree in trees.values() if tree.rules]
    return "; ".join(problem for tree in trees for problem in shape_problems(tree))


def _problem_of_flow(document: FlowDocument) -> str:
    if document.flow.name != document.name:
        return f"its flow has another name, {document.flow.name[:80]!r}"
    return _refusal(lambda: check_names(document.flow))


def _problem_of_element(element: StorageElement) -> str:
    return _refusal(lambda: normalize_element(element))


def _refusal(check: Callable[[], object]) -> str:
    try:
        check()
    except RequestError as error:
        return error.message
    return ""


def _problem_of_job(job: Job) -> str:
    job_events.validate(job)
    return ""


_FORMS: Final[Mapping[str, _Form]] = {
    # shared
    FLOW_KIND: _form(FlowDocument, lambda flow: flow.name, problem_of=_problem_of_flow),
    FLOW_VERSION_KIND: _form(FlowDocument, lambda flow: f"{flow.name}@{flow.version}", problem_of=_problem_of_flow),
    RULES_KIND: _form(RuleSet, lambda rules: rules.name, problem_of=_problem_of_rules),
    VERSION_KIND: _form(RuleSet, lambda rules: version_id(rules.name, rules.version), problem_of=_problem_of_rules),
    FLOW_FILE_KIND: _form(FlowFileDocument, lambda file: id_of(file.name, file.digest)),
    PATTERN_KIND: _form(StoredPattern, _id_of_pattern, problem_of=_problem_of_pattern),
    COMPENSATION_KIND: _form(Compensation, lambda compensation: compensation.task),
    STORAGE_KIND: _form(StorageElement, lambda element: element.name, problem_of=_problem_of_element),
    PLACE_KIND: _form(PlaceDocument, lambda place: StoragePlace(place.element, place.path).id),
    FILE_KIND: _form(LogicalFile, lambda file: file.name, problem_of=lambda file: name_flaw(file.name)),
    # of a tree of cases
    CASE_KIND: _form(CaseDocument),
    JOB_KIND: _form(Job, case_of=lambda job: job.case, problem_of=_problem_of_job),
    ITEM_KIND: _form(ItemDocument, lambda item: f"{item.case}/{item.item}", lambda item: item.case),
    RUNS_KIND: _form(ItemRuns, lambda runs: f"{runs.case}/{runs.item}", lambda runs: runs.case),
    TASK_KIND: _form(TaskDocument, case_of=lambda task: task.case),
    REPLY_KIND: _form(SendReply, lambda _reply: None),
    CONVERSATION_KIND: _form(Conversation, lambda talk: talk.job, lambda talk: talk.case),
    DECISION_KIND: _form(Decision, case_of=lambda decision: None if decision.engine else decision.case),
    OPEN_DECISION_KIND: _form(OpenMarker),
    LEVEL_KIND: _form(LevelEntry, lambda entry: entry.key),
    ENDPOINT_KIND: _form(EndpointDocument, lambda endpoint: endpoint_of(endpoint.flow)),
    MESSAGE_KIND: _form(MessageDocument),
    MESSAGE_REPLY_KIND: _form(ReplyDocument, lambda _reply: None),
    CALLBACK_KIND: _form(CallbackDocument),
    ROUTE_KIND: _form(RouteDocument, lambda _route: None),
    PRUNED_RUNS_KIND: _form(PrunedRuns),
}


def read_document(kind: str, id: str, body: bytes, root: CaseId | None = None) -> Any:
    """The document, which is of the tree with this root, or shared. Raises BadArchive with what is wrong with it."""
    form = _FORMS[kind]
    try:
        found = form.decode(body)
        own_id, case, problem = form.id_of(found), form.case_of(found), form.problem_of(found)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, AssertionError) as error:
        raise BadArchive(f"{kind} {id[:80]!r} cannot be read: {error!s:.300}") from None
    if own_id is not None and own_id != id:
        raise BadArchive(f"{kind} {id[:80]!r} is not what it should be: in it is {kind} {own_id[:80]!r}")
    if case is not None and root_of(case) != root:
        raise BadArchive(f"{kind} {id[:80]!r} is about case {case[:80]!r}, which is not of its tree")
    if problem:
        raise BadArchive(f"{kind} {id[:80]!r}: {problem:.300}")
    return found
