"""Histories as XES 1.0: every event has the standard's attributes, and nothing that a job said breaks the file."""

import xml.etree.ElementTree as ET
from datetime import datetime

from mendflow.core.model.ids import CaseId, ItemId
from mendflow.core.model.repair_views import HistoryEntry
from mendflow.core.model.views import CaseView
from mendflow.formats import xes

AT = 1_760_000_000_123
NS = "{http://www.xes-standard.org/}"
TRANSITIONS = {
    *("schedule", "assign", "withdraw", "reassign", "start", "suspend", "resume"),
    *("pi_abort", "ate_abort", "complete", "autoskip", "manualskip", "unknown"),
}
"""Those of the lifecycle extension's standard model."""


def a_case(id: str = "night-1") -> CaseView:
    return CaseView(id=CaseId(id), flow="night", digest="d", status="completed", started_at=AT, owner="ann")


def an_entry(what: str = "completed", **more: object) -> HistoryEntry:
    fields = {"at": AT, "case": CaseId("night-1"), "source": "engine", "name": "align", "lifecycle": "complete", **more}
    return HistoryEntry(what=what, **fields)  # type: ignore[arg-type]  # the test writes plain words


def attributes(node: ET.Element) -> dict[str, str]:
    return {child.attrib["key"]: child.attrib["value"] for child in node if "key" in child.attrib}


def test_a_log_has_the_standards_frame() -> None:  # EX-11
    log = ET.fromstring(xes.log("night", [(a_case(), [an_entry()])]))
    assert log.tag == f"{NS}log"
    assert log.attrib["xes.version"] == "1.0"
    assert {each.attrib["prefix"] for each in log.findall(f"{NS}extension")} == {"concept", "time", "lifecycle", "org"}
    assert {each.attrib["scope"] for each in log.findall(f"{NS}global")} == {"trace", "event"}
    assert {"Activity"} <= {each.attrib["name"] for each in log.findall(f"{NS}classifier")}
    known = {each.attrib["prefix"] for each in log.findall(f"{NS}extension")} | {"mendflow"}
    used = {node.attrib["key"].partition(":")[0] for node in log.iter() if "key" in node.attrib}
    assert used <= known
    order = [child.tag.removeprefix(NS) for child in log]
    assert order == sorted(order, key=["extension", "global", "classifier", "string", "trace"].index)


def test_a_case_is_a_trace_and_an_entry_an_event() -> None:  # EX-11
    entry = an_entry(item=ItemId("align[3]"), by="node-7", message="fine", decision="d/1", exlet="later")
    log = ET.fromstring(xes.log("night", [(a_case(), [entry, an_entry("decided", lifecycle="", name="")])]))
    [trace] = log.findall(f"{NS}trace")
    assert attributes(trace)["concept:name"] == "night-1"
    first, second = [attributes(event) for event in trace.findall(f"{NS}event")]
    assert first["concept:name"] == "align"
    assert first["lifecycle:transition"] == "complete"
    assert first["org:resource"] == "node-7"
    assert datetime.fromisoformat(first["time:timestamp"]).timestamp() * 1000 == AT
    assert (first["mendflow:item"], first["mendflow:exlet"], first["mendflow:decision"]) == ("align[3]", "later", "d/1")
    assert (second["concept:name"], second["lifecycle:transition"]) == ("decided", "unknown")
    assert "org:resource" not in second
    assert {first["lifecycle:transition"], second["lifecycle:transition"]} <= TRANSITIONS


def test_whatever_a_job_said_stays_text() -> None:  # EX-11
    evil = "a < b & \"c\" 'd' ]]> \x00\x1b[31m\ud800 <event/> \n\t é 😀"
    log = ET.fromstring(xes.log(evil, [(a_case(), [an_entry(message=evil, name=evil)])]))
    [event] = log.iter(f"{NS}event")
    told = attributes(event)["mendflow:message"]
    assert told.startswith("a < b & \"c\" 'd' ]]> [31m <event/>")
    assert told.endswith("é 😀")
    assert len(list(log.iter(f"{NS}event"))) == 1
