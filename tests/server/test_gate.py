"""The gate reads a path as the router does: so whoever may not do something does not get at it by another spelling."""

import re
from typing import cast
from urllib.parse import unquote

from hypothesis import given, settings
from hypothesis import strategies as st
from litestar.exceptions import HTTPException
from litestar.types import Method
from litestar.utils import normalize_path

from mendflow.operations.table import API, OPERATIONS, find_operation
from mendflow.server.app import routes
from tests.examples import examples

METHODS = ("GET", "HEAD", "PUT", "POST", "DELETE", "OPTIONS", "PATCH")
WORDS = sorted({word for each in OPERATIONS.values() for word in each.path.split("/") if word and "{" not in word})
"""Every word that a path has, which may also be the name of something."""

odd_words = st.sampled_from(
    ["1", "last", "", ".", "..", "%2F", "a%2Fb", "%2f%2f", "*", "align[3]", "a b", "{name}", "%"]
)
words = st.one_of(st.sampled_from(WORDS), odd_words, st.text(max_size=3))


@st.composite
def paths(draw: st.DrawFn) -> str:
    """A path of the table, with any names filled in, and then spoilt; as a client writes it."""
    template = draw(st.sampled_from([each.path for each in OPERATIONS.values()]))
    path = API + re.sub(r"{.*?}", lambda _: draw(words), template)
    for _ in range(draw(st.integers(0, 3))):
        parts = path.split("/")
        place = draw(st.integers(0, len(parts)))
        how = draw(st.sampled_from(["insert", "drop", "double", "replace"]))
        if how == "insert":
            parts.insert(place, draw(words))
        elif how == "double":
            parts.insert(place, "")
        else:
            parts[place : place + 1] = [] if how == "drop" else [draw(words)]
        path = "/".join(parts)
    return path


def routed(method: str, path: str) -> str:
    """The operation that the router chooses, as the server calls it; empty if none."""
    try:
        _, handler, *_ = routes().asgi_router.handle_routing(path=normalize_path(path), method=cast(Method, method))
    except HTTPException:
        return ""
    return handler.handler_name


@settings(max_examples=examples(1000))
@given(method=st.sampled_from(METHODS), written=paths())
def test_whatever_the_router_answers_the_gate_has_known_by_name(method: str, written: str) -> None:
    path = unquote(written)
    chosen, found = routed(method, path), find_operation(method, path)
    if chosen and method != "OPTIONS":
        assert found is not None
        assert found.id == chosen


@given(st.sampled_from(list(OPERATIONS.values())), st.data())
def test_every_operation_is_found_by_a_path_of_its_own(operation: object, data: st.DataObject) -> None:
    """Names that are no words of the table, and no slashes: then nothing is meant but this operation."""
    each = next(one for one in OPERATIONS.values() if one is operation)
    name = st.text("abcxyz0189.-~", min_size=1, max_size=8).filter(lambda word: word not in WORDS)
    path = API + re.sub(r"{.*?}", lambda _: data.draw(name), each.path)
    assert find_operation(each.method, path) is each
    assert find_operation(each.method, f"/{path}//") is each
