"""The adapter puts an interceptor in the place of each invoke, in standard BPEL, and leaves all else as it stands."""

import re
from pathlib import Path

import pytest
from lxml import etree

from mendflow.core.model.errors import BadFlow
from mendflow.formats.bpel import load_bpel
from mendflow.formats.bpel.adapter import adapt
from mendflow.formats.bpel.vocabulary import BPEL
from tests.formats.bpel.adapter.bank import ASK, NAMES, PROXY, found, one, save, texts, woven, written


def test_every_line_but_the_invoke_stays_as_it_was(tmp_path: Path) -> None:  # FM-9
    path = written(tmp_path)
    adapted = save(adapt(path, tmp_path / "adapted.bpel")).read_text()
    before, after = path.read_text().split(f"    {ASK}\n")
    proxy = '<import namespace="urn:mendflow:proxy:1" location="adapted.files/mendflow-proxy.wsdl"'
    head, _, rest = adapted.partition("    <scope")
    assert [line for line in head.splitlines() if proxy not in line] == before.splitlines()
    assert rest.endswith(f"    </scope>\n{after}")


def test_what_is_woven_is_standard_bpel_and_calls_nothing_but_the_proxy(tmp_path: Path) -> None:  # FM-9
    root = woven(tmp_path)
    for literal in found(root, "//b:literal"):
        literal.clear()
    assert {etree.QName(each).namespace for each in root.iter(etree.Element)} == {BPEL}
    assert set(texts(root, "//b:invoke/@partnerLink")) == {"mendflowProxy"}
    assert texts(root, "//b:invoke/@name") == ["ask.open", "ask", "ask.ask", "ask.result"]
    assert texts(root, "//b:invoke/@operation") == ["open", "begin", "ask", "result"]


def test_the_key_of_a_call_is_in_the_process_before_the_call_is_made(tmp_path: Path) -> None:  # FM-9 FM-10
    scope = one(woven(tmp_path), "//b:scope")
    steps = [etree.QName(each).localname for each in one(scope, "b:sequence")]
    assert steps == ["assign", "invoke", "assign", "invoke", "assign", "while", "invoke", "assign"]
    copied = one(scope, "b:sequence/b:assign[2]/b:copy[b:to[contains(., 'mendflow:key')]]")
    assert copied[0].text == "$mendflowKey.parameters/mendflow:key"
    assert texts(scope, ".//b:while//b:for/text()") == ["string($mendflowProgress.parameters/mendflow:askAfter)"]


def test_the_call_says_all_that_the_proxy_needs(tmp_path: Path) -> None:
    call = one(woven(tmp_path), "//p:begin")
    said = {etree.QName(each).localname: (each.text or "").strip() for each in call}
    assert said["activity"] == "ask"
    assert said["address"] == "http://127.0.0.1:9/bank"
    assert said["action"] == "urn:ask"
    assert said["portType"] == "{urn:test:bank}Bank"
    assert said["operation"] == "ask"
    assert said["style"] == "document"
    assert texts(call, "p:answer/@element") == ["{urn:test:bank}offer"]
    assert texts(call, "p:fault/@name") == ["Broke", "Shut"]
    assert call.get("oneWay") is None


def test_the_endpoint_that_is_called_is_the_partner_link_s_when_it_is_called(tmp_path: Path) -> None:
    copies = found(woven(tmp_path), "//b:copy[b:from/@partnerLink]")
    assert [dict(copy[0].attrib) for copy in copies] == [{"partnerLink": "bank", "endpointReference": "partnerRole"}]


def test_a_declared_fault_is_thrown_under_its_own_name_with_its_own_data(tmp_path: Path) -> None:
    root = woven(tmp_path)
    assert texts(root, "//b:catch/@faultName") == ["mendflow:failed"]
    assert texts(root, "//b:throw/@faultName") == ["bank:Broke", "bank:Shut"]
    assert texts(root, "//b:throw/@faultVariable") == ["mendflowFault1", "mendflowFault2"]
    assert texts(root, "//b:variable[@name='mendflowFault2']/@messageType") == ["bank:shut"]
    assert len(found(root, "//b:catch//b:else/b:rethrow")) == 1


def test_a_one_way_call_waits_until_it_is_taken_and_takes_nothing_back(tmp_path: Path) -> None:
    root = woven(tmp_path, '<invoke name="tell" partnerLink="bank" operation="tell" inputVariable="asked"/>')
    assert one(root, "//p:begin").get("oneWay") == "true"
    assert [etree.QName(each).localname for each in one(root, "//b:scope/b:sequence")][-2:] == ["while", "invoke"]
    assert found(root, "//b:faultHandlers") == []


def test_a_message_without_parts_needs_no_variable(tmp_path: Path) -> None:
    root = woven(tmp_path, '<invoke partnerLink="bank" operation="ping"/>')
    assert texts(root, "//p:activity/text()") == ["ping"]
    assert found(root, "//p:part") == []


def test_parts_of_a_type_go_into_a_value_of_the_proxy(tmp_path: Path) -> None:
    root = woven(
        tmp_path,
        """<invoke name="move" partnerLink="bank" operation="transfer">
             <toParts><toPart part="from" fromVariable="name"/><toPart part="loan" fromVariable="plain"/></toParts>
             <fromParts><fromPart part="left" toVariable="left"/></fromParts>
           </invoke>""",
    )
    call = one(root, "//p:begin")
    assert len(found(call, "p:message/p:part[@name='from' or @name='loan']/p:value")) == 2
    assert texts(call, "p:style/text()") == ["rpc"]
    assert texts(call, "p:namespace/text()") == ["urn:test:rpc"]
    assert texts(call, "p:answer/@type") == ["{http://www.w3.org/2001/XMLSchema}int"]
    assert texts(root, "//b:copy/b:from/@variable") == ["name", "plain"]
    assert texts(root, "//b:copy[b:to/@variable='left']/b:from/text()") == [
        "$mendflowAnswer.parameters/mendflow:message/mendflow:part[@name='left']/mendflow:value"
    ]


def test_a_variable_may_be_the_element_that_the_message_is(tmp_path: Path) -> None:
    root = woven(tmp_path, '<invoke partnerLink="bank" operation="ask" inputVariable="loan" outputVariable="offer"/>')
    assert texts(root, "//b:copy[b:from/@variable='loan']/b:from/@part") == []
    assert texts(root, "//b:copy[b:to/@variable='offer']/@keepSrcElementName") == ["yes"]


def test_a_variable_of_a_handler_is_known_by_what_the_handler_says(tmp_path: Path) -> None:
    ask = ASK.replace('"asked"', '"loan"')
    body = f"""<scope><faultHandlers>
        <catch faultName="bank:x" faultVariable="loan" faultMessageType="bank:ask">{ask}</catch>
      </faultHandlers><empty/></scope>"""
    assert texts(woven(tmp_path, body), "//b:copy/b:from[@variable='loan']/@part") == ["loan"]


def test_links_of_an_invoke_are_links_of_its_interceptor(tmp_path: Path) -> None:
    body = """<flow><links><link name="there"/></links>
      <empty><sources><source linkName="there"/></sources></empty>
      <invoke name="ask" suppressJoinFailure="yes" partnerLink="bank" operation="ask" inputVariable="asked"
              outputVariable="answered">
        <targets><joinCondition>$there</joinCondition><target linkName="there"/></targets>
      </invoke></flow>"""
    scope = one(woven(tmp_path, body), "//b:flow/b:scope")
    assert scope.get("suppressJoinFailure") == "yes"
    assert etree.QName(scope[0]).localname == "targets"
    assert found(scope, ".//b:invoke/b:targets") == []


def test_handlers_of_an_invoke_stand_around_its_interceptor_under_its_name(tmp_path: Path) -> None:
    body = ASK.replace("/>", ">", 1) + (
        f"<catchAll>{ASK.replace('ask', 'again', 1)}</catchAll>"
        "<compensationHandler><empty/></compensationHandler></invoke>"
    )
    outer = one(woven(tmp_path, body), "/b:process/b:sequence/b:scope")
    assert outer.get("name") == "ask"
    assert [etree.QName(each).localname for each in outer] == ["faultHandlers", "compensationHandler", "scope"]
    assert "again" in texts(outer, "b:faultHandlers/b:catchAll//b:invoke/@name")
    assert texts(outer, "b:scope//b:invoke/@operation") == ["open", "begin", "ask", "result"]


def test_every_scope_of_an_interceptor_has_a_name_that_no_other_has(tmp_path: Path) -> None:  # FM-9
    caught = ASK.replace("/>", "><catchAll><empty/></catchAll></invoke>")
    nameless = caught.replace('name="ask"', "")
    body = f'{ASK}{ASK}{nameless}<scope name="a">{caught}</scope><scope name="b">{caught}</scope>'
    names = texts(woven(tmp_path, body), "//b:scope/@name")
    assert len(names) == len(set(names)) == 10 and "ask" not in names
    assert texts(woven(tmp_path, ASK + caught), "//b:scope[b:faultHandlers/b:catchAll]/@name") == ["ask"]


def test_only_the_chosen_invokes_are_intercepted(tmp_path: Path) -> None:
    path = written(tmp_path, ASK + ASK.replace("ask", "other", 1))
    adapted = adapt(path, tmp_path / "adapted.bpel", only=["other"])
    assert adapted.woven.calls == ("other",)
    assert adapted.woven.left == (("ask", "not chosen"),)


def test_an_invoke_that_is_not_there_is_told_with_those_that_are(tmp_path: Path) -> None:
    path = written(tmp_path, ASK + ASK.replace("ask", "other", 1))
    with pytest.raises(BadFlow, match=r"no invoke named othr; there are ask, other \(did you mean `other`\?\)"):
        adapt(path, tmp_path / "adapted.bpel", only=["othr"])
    with pytest.raises(BadFlow, match=r"no invoke named nosuch; there are ask, other$"):
        adapt(path, tmp_path / "adapted.bpel", only=["nosuch"])
    many = "".join(ASK.replace("ask", f"ask{number}", 1) for number in range(22))
    with pytest.raises(BadFlow, match=r"there are ask0, .*, ask19 and 2 more"):
        adapt(written(tmp_path, many), tmp_path / "adapted.bpel", only=["nosuch"])
    nameless = written(tmp_path, ASK.replace('name="ask"', ""))
    with pytest.raises(BadFlow, match=r"no invoke of this process has a name"):
        adapt(nameless, tmp_path / "adapted.bpel", only=["ask"])


def test_a_process_that_calls_nobody_stays_what_it_is(tmp_path: Path) -> None:
    path = written(tmp_path, "<empty/>")
    adapted = adapt(path, tmp_path / "adapted.bpel")
    assert list(adapted.files) == [tmp_path / "adapted.bpel"]
    assert load_bpel(save(adapted)).body == load_bpel(path).body


def test_an_invoke_in_a_literal_is_none(tmp_path: Path) -> None:
    copy = f"<copy><from><literal>{ASK}</literal></from><to variable='name'/></copy>"
    adapted = adapt(written(tmp_path, f"<assign>{copy}</assign>{ASK}"), tmp_path / "adapted.bpel")
    assert adapted.woven.calls == ("ask",)
    assert f"<literal>{ASK}</literal>" in save(adapted).read_text()


def test_names_and_prefixes_of_the_process_are_left_to_it(tmp_path: Path) -> None:
    variables = '<variable name="mendflowCall" type="xsd:int"/>'
    root = woven(tmp_path, more='xmlns:mendflow="urn:something:else"', variables=variables)
    scope = one(root, "//b:scope")
    assert scope.nsmap["mendflow2"] == PROXY
    assert "mendflowCall_2_" in texts(scope, "b:variables/b:variable/@name")


def test_a_process_with_a_prefix_for_bpel_gets_interceptors_with_it(tmp_path: Path) -> None:
    path = written(tmp_path)
    head, body = path.read_text().split("<process ")
    prefixed = re.sub(r"<(/?)(?=\w)", r"<\1bpel:", f"<process {body}").replace(
        " xmlns=", " xmlns='urn:other' xmlns:bpel="
    )
    path.write_text(head + prefixed)
    adapted = save(adapt(path, tmp_path / "adapted.bpel")).read_text()
    assert "<bpel:scope " in adapted and "ns0" not in adapted and "</bpel:scope>" in adapted


def test_a_prefix_that_only_the_invoke_declares_goes_along(tmp_path: Path) -> None:
    body = ASK.replace('portType="bank:Bank"', 'xmlns:shop="urn:test:bank" portType="shop:Bank"').replace("/>", ">", 1)
    body += "<catch faultName='shop:Broke'><empty/></catch></invoke>"
    root = woven(tmp_path, body)
    assert one(root, "//b:catch[@faultName='shop:Broke']").nsmap["shop"] == NAMES["bank"]


def test_a_process_in_another_language_says_that_these_expressions_are_xpath(tmp_path: Path) -> None:
    root = woven(tmp_path, more='expressionLanguage="urn:mendflow:cel"')
    told = {each.get("expressionLanguage") for each in found(root, "//b:scope//b:condition | //b:scope//b:to[text()]")}
    assert told == {"urn:oasis:names:tc:wsbpel:2.0:sublang:xpath1.0"}


def test_the_proxy_s_address_is_that_of_its_wsdl(tmp_path: Path) -> None:
    adapted = adapt(written(tmp_path), tmp_path / "a.bpel", proxy="http://127.0.0.1:8470/soap/proxy")
    wsdl = adapted.files[tmp_path / "a.files" / "mendflow-proxy.wsdl"].decode()
    assert 'location="http://127.0.0.1:8470/soap/proxy"' in wsdl
    assert "mendflow:proxy" not in wsdl.split("</wsdl:documentation>")[-1]


def test_what_has_interceptors_already_is_not_adapted_again(tmp_path: Path) -> None:
    once = save(adapt(written(tmp_path, ASK + ASK.replace("ask", "b", 1)), tmp_path / "once.bpel", only=["ask"]))
    with pytest.raises(BadFlow, match="it has interceptors already"):
        adapt(once, tmp_path / "twice.bpel")


def test_a_broken_process_is_refused_as_it_would_be_by_any_command(tmp_path: Path) -> None:
    with pytest.raises(BadFlow):
        adapt(written(tmp_path, ASK.replace('"bank"', '"bnk"', 1)), tmp_path / "adapted.bpel")


def test_in_another_folder_everything_that_is_imported_goes_along(tmp_path: Path) -> None:
    path = written(tmp_path / "here" / "inner")
    wsdl = (tmp_path / "here" / "inner" / "bank.wsdl").replace(tmp_path / "here" / "bank.wsdl")
    path.write_text(path.read_text().replace('"bank.wsdl"', '"../bank.wsdl"'))
    out = save(adapt(path, tmp_path / "there" / "adapted.bpel"))
    copies = sorted(each.name for each in (tmp_path / "there" / "adapted.files").iterdir())
    assert copies == ["bank.wsdl", "mendflow-proxy.wsdl"]
    wsdl.unlink()
    assert load_bpel(out).name == "loan"
