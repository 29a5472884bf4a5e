"""A process that has its own copy of the WSDL of our ports keeps all that the copy says."""

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mendflow.core.model.errors import BadFlow
from mendflow.core.model.flow import Flow
from mendflow.formats.bpel import load_bpel
from mendflow.formats.bpel.adapter import adapt
from mendflow.formats.bpel.writing import write_bpel
from tests.examples import examples
from tests.formats.bpel.adapter.bank import ASK, save, written
from tests.formats.bpel.documents import WSDL, put, sequence
from tests.formats.bpel.writing.rounds import check_round, read_again

EXAMPLES = Path(__file__).parents[4] / "examples" / "bpel"
CORRELATED = ASK.replace(
    "/>",
    '><correlations><correlation set="set" initiate="no" pattern="request-response"/></correlations></invoke>',
)
ADDRESS = 'location="mendflow:jobs"'
OTHER = "http://other.example:8642/soap/jobs"
CHANGES = {
    "another address": (ADDRESS, f'location="{OTHER}"'),
    "another action": ("urn:mendflow:jobs:1/run", "urn:other:run"),
    "another style": ('style="document"', 'style="rpc"'),
    "one more property": ("<plnk:partnerLinkType", '<vprop:property name="mine" type="xsd:int"/><plnk:partnerLinkType'),
    "one more alias": (
        "<plnk:partnerLinkType",
        '<vprop:propertyAlias propertyName="tns:jobId" messageType="tns:cancelRequest" part="parameters"><vprop:query>'
        "tns:jobId</vprop:query></vprop:propertyAlias><plnk:partnerLinkType",
    ),
    "one more element": ("</xsd:schema>", '<xsd:element name="mine" type="xsd:int"/></xsd:schema>'),
    "one more port": (
        "</wsdl:service>",
        '<wsdl:port name="Second" binding="tns:JobsSoap"><soap:address location="http://second.example/"/></wsdl:port>'
        "</wsdl:service>",
    ),
}


def own_jobs(folder: Path, example: str, *changes: tuple[str, str]) -> Flow:
    """An example, with changes in its copy of the WSDL of the jobs."""
    shutil.copytree(EXAMPLES, folder)
    for old, new in changes:
        text = (folder / "jobs.wsdl").read_text()
        assert old in text
        (folder / "jobs.wsdl").write_text(text.replace(old, new, 1))
    return load_bpel(folder / f"{example}.bpel")


def addresses(flow: Flow) -> set[str]:
    assert flow.xml is not None
    return {port.address for port in flow.xml.ports}


@pytest.mark.parametrize("example", sorted(path.stem for path in EXAMPLES.glob("*.bpel")))
def test_a_queue_on_another_server_stays_where_it_is(example: str, tmp_path: Path) -> None:  # FM-2
    flow = own_jobs(tmp_path / "first", example, CHANGES["another address"])
    check_round(flow, tmp_path / "second")
    assert OTHER in addresses(load_bpel(tmp_path / "second" / f"{flow.name}.bpel"))


@given(names=st.sets(st.sampled_from(sorted(CHANGES))), example=st.sampled_from(["callback", "synchronous"]))
@settings(max_examples=examples(25), deadline=None)
def test_whatever_a_copy_says_of_its_own_is_the_same_after_a_round(names: set[str], example: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        flow = own_jobs(Path(folder, "first"), example, *(CHANGES[name] for name in sorted(names)))
        check_round(flow, Path(folder, "second"))
        bare = '<bpel:import namespace="urn:mendflow:jobs:1" importType' in write_bpel(flow)[f"{flow.name}.bpel"]
        assert bare == (not names), "only what is as it is shipped needs no file"


def test_a_role_of_another_name_is_kept(tmp_path: Path) -> None:
    flow = own_jobs(tmp_path / "first", "synchronous")
    wsdl, process = tmp_path / "first" / "jobs.wsdl", tmp_path / "first" / "synchronous.bpel"
    wsdl.write_text(wsdl.read_text().replace('role name="queue"', 'role name="line"'))
    process.write_text(process.read_text().replace('partnerRole="queue"', 'partnerRole="line"'))
    renamed = load_bpel(process)
    assert renamed != flow
    check_round(renamed, tmp_path / "second")


@pytest.mark.parametrize("proxy", ["mendflow:proxy", "http://127.0.0.1:35181/soap/proxy"])
@pytest.mark.parametrize("body", [ASK, CORRELATED], ids=["plain", "correlated"])
def test_an_adapted_process_keeps_its_proxy_and_its_correlations(body: str, proxy: str, tmp_path: Path) -> None:  # FM-9
    out = save(adapt(written(tmp_path / "first", body), tmp_path / "first" / "adapted.bpel", proxy))
    flow = load_bpel(out)
    check_round(flow, tmp_path / "second")
    assert proxy in addresses(read_again(flow, tmp_path / "third"))


def test_an_alias_of_an_element_that_only_a_schema_knows_is_kept(tmp_path: Path) -> None:
    schema = (
        '<xsd:schema xmlns:xsd="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:n">'
        '<xsd:element name="n" type="xsd:int"/></xsd:schema>'
    )
    alias = '<vprop:propertyAlias xmlns:n="urn:n" propertyName="o:number" element="n:n"/></definitions>'
    head = '<import namespace="urn:n" location="n.xsd" importType="http://www.w3.org/2001/XMLSchema"/><partnerLinks>'
    text = sequence().replace("<partnerLinks>", head, 1)
    path = put(tmp_path / "first", text, n_xsd=schema, orders_wsdl=WSDL.replace("</definitions>", alias))
    flow = load_bpel(path)
    assert flow.xml is not None and len(flow.xml.aliases) == 2
    check_round(flow, tmp_path / "second")


SERVICES = """<?xml version="1.0"?>
<definitions targetNamespace="urn:{0}" xmlns="http://schemas.xmlsoap.org/wsdl/" xmlns:o="urn:orders"
    xmlns:soap="http://schemas.xmlsoap.org/wsdl/soap/">
  <service name="{1}"><port name="P" binding="o:ShopSoap"><soap:address location="http://{2}.example/"/></port></service>
</definitions>
"""


def served(folder: Path, *runtime: tuple[str, str, str]) -> Flow:
    """A process with services of its shop in files of their own, which are read before the shop's."""
    files = {f"s{number}_wsdl": SERVICES.format(*each) for number, each in enumerate(runtime)}
    imports = "".join(
        f'<import namespace="urn:{each[0]}" location="s{number}.wsdl" importType="http://schemas.xmlsoap.org/wsdl/"/>'
        for number, each in enumerate(runtime)
    )
    return load_bpel(put(folder, sequence().replace("<import ", f"{imports}<import ", 1), orders_wsdl=WSDL, **files))


def test_of_several_ports_the_first_stays_the_first(tmp_path: Path) -> None:
    check_round(served(tmp_path / "first", ("a", "A", "a"), ("b", "B", "b")), tmp_path / "second")


def test_ports_of_one_name_stay_two(tmp_path: Path) -> None:
    check_round(served(tmp_path / "first", ("a", "A", "a"), ("a", "A", "b")), tmp_path / "second")


def test_ports_whose_order_would_be_lost_are_refused_by_name(tmp_path: Path) -> None:
    flow = served(tmp_path, ("a", "A", "a"), ("b", "B", "b"), ("a", "A", "c"))
    with pytest.raises(BadFlow, match=r"\{urn:orders\}Shop has ports in services whose order would be lost"):
        write_bpel(flow)


def test_bindings_keep_their_names_and_ports_may_share_one(tmp_path: Path) -> None:  # FM-9
    flow = served(tmp_path / "first", ("a", "A", "a"), ("a", "B", "b"))
    again = read_again(flow, tmp_path / "second")
    assert flow.xml is not None and again.xml is not None
    assert [port.binding for port in again.xml.ports] == [port.binding for port in flow.xml.ports] == ["ShopSoap"] * 3
    texts = [each.read_text() for each in (tmp_path / "second").rglob("*.wsdl")]
    assert sum(text.count('<wsdl:binding name="ShopSoap"') for text in texts) == 2
