"""An operation is one entry of the table and one function of the domain; whatever else there is of it follows."""

import inspect
import re

import pytest
from litestar.response import Stream

from mendflow.cli.local_client import LocalClient
from mendflow.client import Client, SyncClient
from mendflow.core.model.principals import Principal
from mendflow.operations.operation import ApiOperation
from mendflow.operations.roles import VIEWERS
from mendflow.operations.table import CALLS, OPERATIONS, SPECIAL
from mendflow.server.routes.handlers import BY_HAND, handlers
from mendflow.services.api.domain import Domain
from tests.shape.source import python_files
from tools import access_matrix

PILOTS_ALONE = {"sync", "locate", "place", "keep_many"}
"""Answered without the framework, because pilots ask thousands of times a minute."""


@pytest.mark.parametrize("operation", CALLS, ids=lambda each: each.name)
def test_the_domain_has_a_function_with_the_same_parameters(operation: ApiOperation) -> None:
    answered = inspect.signature(getattr(Domain, operation.name)).parameters
    asked = operation.signature.parameters
    # who asks, what it may see and end, and in which project; and what nobody outside decides: whether other servers
    # are asked, and what servers call that which they do together
    extra = {"who", "teller", "sight", "task_roles", "made_in", "everywhere", "application", "shows_env"}
    assert [name for name in answered if name not in extra] == list(asked)
    for name, parameter in asked.items():
        assert answered[name].kind == parameter.kind, name
        if parameter.default is inspect.Parameter.empty:
            assert answered[name].default is inspect.Parameter.empty, f"{name} is required"


@pytest.mark.parametrize("operation", CALLS, ids=lambda each: each.name)
@pytest.mark.parametrize("client", [Client, SyncClient, LocalClient])
def test_every_client_has_every_call(client: type, operation: ApiOperation) -> None:
    mine, declared = inspect.signature(getattr(client, operation.name)), operation.signature
    assert [each.name for each in mine.parameters.values()] == [each.name for each in declared.parameters.values()]


def test_every_operation_has_a_route_and_nobody_defines_another() -> None:
    names = [each.handler_name for each in handlers()]
    assert sorted(names) == sorted(each.id for each in OPERATIONS.values() if each.name not in PILOTS_ALONE)
    assert BY_HAND.keys() <= OPERATIONS.keys()
    assert {each.name for each in SPECIAL} - PILOTS_ALONE <= BY_HAND.keys()
    made = re.compile(r"^from litestar import .*\b(get|post|put|patch|delete|head|route|asgi|Controller)\b", re.M)
    found = [path.name for path in python_files("src") if made.search(path.read_text())]
    assert found == ["handlers.py"]


def test_what_is_sent_or_received_in_parts_says_so() -> None:  # SE-3
    sent = {name for name, handler in BY_HAND.items() if inspect.signature(handler).return_annotation is Stream}
    received = {name for name, handler in BY_HAND.items() if "body_chunks(" in inspect.getsource(handler)}
    assert sent and sent <= {each.name for each in OPERATIONS.values() if each.streams}
    assert received == {each.name for each in OPERATIONS.values() if each.stores_body}


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=lambda each: each.name)
def test_every_operation_says_what_it_is_about(operation: ApiOperation) -> None:  # SE-1
    subject = operation.subject
    assert subject is not None, f"{operation.name} is refused to all but administrators until it says what it is about"
    if subject.is_single and operation.is_call:
        assert subject.argument in operation.signature.parameters, subject
    if subject.kind == "listed" and operation.is_call:
        answered = inspect.signature(getattr(Domain, operation.name)).parameters
        assert "sight" in answered, f"{operation.name} lists things, and is not told of which projects"


def test_an_operation_that_says_nothing_is_for_administrators() -> None:  # SE-1
    silent = ApiOperation("silent", "GET", "/silent", VIEWERS, doc="")
    assert not silent.allowed.allow(Principal("ann", frozenset({"user"})))
    assert silent.allowed.allow(Principal("root", frozenset({"admin"})))


def test_the_page_of_who_may_do_what_is_up_to_date() -> None:  # SE-1
    assert access_matrix.TARGET.read_text() == access_matrix.page(), "run python tools/access_matrix.py"


def test_no_two_operations_share_a_method_and_a_path() -> None:
    asked = [(each.method, re.sub(r"{.*?}", "{}", each.path)) for each in OPERATIONS.values()]
    assert len(asked) == len(set(asked))
    assert len(OPERATIONS) == len(CALLS) + len(SPECIAL), "each has a name of its own"


def test_no_name_that_a_user_chooses_is_taken_by_a_path() -> None:
    # ids that mendflow makes
    ours = {"case", "serial", "decision", "group", "alert", "gathering", "number", "sha256", "pilot"}
    fixed = {each.path for each in OPERATIONS.values()}
    for path in fixed:
        before, brace, name = path.partition("{")
        if brace and name.partition("}")[0].partition(":")[0] not in ours:
            taken = [other for other in fixed if other.startswith(before) and other[len(before) :][:1] not in ("{", "")]
            assert not taken, f"what is named so in {path} cannot be reached"


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=lambda each: each.name)
def test_an_operation_says_what_it_does(operation: ApiOperation) -> None:
    assert operation.summary
    assert operation.summary[0].isupper()
    assert len(operation.summary) < 100
    assert operation.tag
