"""An invoke that is intercepted keeps its correlations: the proxy's messages get aliases for the properties."""

from pathlib import Path

import pytest
from lxml import etree

from mendflow.core.model.errors import BadFlow
from mendflow.core.xml import ParsedElement
from mendflow.formats.bpel import load_bpel
from mendflow.formats.bpel.adapter import adapt
from tests.formats.bpel.adapter.bank import ASK, save, texts, written


def correlated(pattern: str) -> str:
    inside = f'<correlations><correlation set="set" initiate="no" {pattern}/></correlations>'
    return ASK.replace("/>", f">{inside}</invoke>")


def adapted(folder: Path, body: str, query: str = "bank:number") -> tuple[ParsedElement, dict[str, str]]:
    """The process, and the ways to the property in each of the proxy's messages."""
    out = save(adapt(written(folder, body, query=query), folder / "adapted.bpel"))
    world = load_bpel(out).xml
    assert world is not None
    ways = {
        alias.of.message.rpartition("}")[2]: alias.query.text
        for alias in world.aliases
        if alias.of.message.startswith("{urn:mendflow:proxy:1}") and alias.query is not None
    }
    return etree.parse(out).getroot(), ways


def test_request_and_response_are_correlated_where_their_parts_stand_in_the_proxy_s_messages(tmp_path: Path) -> None:
    root, ways = adapted(tmp_path, correlated('pattern="request-response"'))
    correlated_by = "//b:invoke[@operation='{}']/b:correlations/b:correlation/@pattern"
    assert texts(root, correlated_by.format("begin")) == ["request"]
    assert texts(root, correlated_by.format("result")) == ["response"]
    assert ways == {
        "beginRequest": "tns:message/tns:part[@name='loan']/ns:loan/ns:number",
        "callResponse": "tns:message/tns:part[@name='offer']/ns:offer",
    }


def test_a_one_way_call_is_correlated_by_its_request(tmp_path: Path) -> None:
    body = correlated("").replace('operation="ask"', 'operation="tell"').replace('outputVariable="answered"', "")
    root, ways = adapted(tmp_path, body)
    assert texts(root, "//b:invoke//b:correlation/@pattern") == ["request"]
    assert list(ways) == ["beginRequest"]


def test_a_query_from_the_root_begins_at_the_part(tmp_path: Path) -> None:
    _, ways = adapted(tmp_path, correlated('pattern="request"'), query="/bank:loan/bank:number")
    assert ways == {"beginRequest": "tns:message/tns:part[@name='loan']/ns:loan/ns:number"}


def test_two_invokes_share_one_alias(tmp_path: Path) -> None:
    _, ways = adapted(tmp_path, correlated('pattern="request"') * 2)
    assert ways == {"beginRequest": "tns:message/tns:part[@name='loan']/ns:loan/ns:number"}


def test_what_cannot_be_correlated_through_the_proxy_is_refused_by_name(tmp_path: Path) -> None:
    path = written(tmp_path, correlated('pattern="request"'), query="bank:number | bank:sum")
    with pytest.raises(
        BadFlow, match=r"ask cannot be intercepted .* no plain path: bank:number \| bank:sum"
    ) as refused:
        adapt(path, tmp_path / "adapted.bpel")
    assert refused.value.problems[0].line > 0
