"""The report's repairs: which rule concluded what from which values, what the exlet did, what it cost; and the cases
that belong to a case, each to be opened on the same page."""

import re
from html.parser import HTMLParser

import msgspec

from mendflow.core.model.flow import Flow, JobActivity
from mendflow.core.model.ids import CaseId, FlowName, ItemId
from mendflow.core.model.repair import ExceptionType
from mendflow.core.model.repair_views import DecisionView, HistoryEntry, TrailStep
from mendflow.core.model.views import CaseView, ItemView, NameCount
from mendflow.pages.page import render
from mendflow.pages.repairs import Cost, costs
from tests.cli.test_report import EVIL, START, a_fault, an_attempt, an_item

FLOW = Flow(name=FlowName("align"), body=JobActivity(name="align", command="true"))


def a_case(id: str = "align-7f3k", **more: object) -> CaseView:
    counts = [NameCount(name="align", kind="job", done=1, mended=1)]
    made = CaseView(id=CaseId(id), flow="align", digest="d", status="completed", started_at=START, counts=counts)
    return msgspec.structs.replace(made, ended_at=START + 9_000, **more)


def a_decision(number: int, at_ms: int, **more: object) -> DecisionView:
    made = DecisionView(
        id=f"align-7f3k/1:{number}:1/abort",
        case=CaseId("align-7f3k"),
        flow="align",
        type=ExceptionType.ABORT,
        at=START + at_ms,
        ended_at=START + at_ms + 250,
        state="done",
        item=ItemId("align"),
        fault=a_fault(),
        rules="align",
        version=4,
        rule=2,
        exlet="more-memory",
        exlet_case=CaseId(f"align-7f3k.x{number}"),
        trail=[
            TrailStep(rule=1, held=True, condition='fault.category == "job"', values={"fault.category": "job"}),
            TrailStep(rule=2, held=True, condition="job.peak_bytes > 5", values={"job.peak_bytes": 7}),
            TrailStep(rule=3, held=False, condition="job.losses > 2", error="no such key"),
        ],
        result="recovered",
    )
    return msgspec.structs.replace(made, **more)


def an_item_tried(*ends_ms: int) -> ItemView:
    """An item whose attempts end at these moments; all but the last failed."""
    last = ends_ms[-1]
    attempts = [
        an_attempt(number, end - 1_000, 1_000, None if end == last else a_fault())
        for number, end in enumerate(ends_ms, 1)
    ]
    return an_item("align", 1, attempts)


class Closed(HTMLParser):
    """Every element that is opened is closed in its turn."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in ("meta", "input", "br", "rect", "path", "line"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self.open:
            assert self.open.pop() == tag


def test_a_repair_is_told_with_its_rule_its_values_its_steps_and_its_cost() -> None:  # EX-11
    exlet = a_case("align-7f3k.x1", flow="more-memory", mends=CaseId("align-7f3k"), mends_item=ItemId("align"))
    step = HistoryEntry(
        at=START, case=exlet.id, source="engine", what="mending", name="re-submit", item=ItemId("s"), message="item"
    )
    page = render(
        a_case(),
        FLOW,
        [an_item_tried(1_000, 3_000)],
        called=[exlet],
        decisions=[a_decision(1, 1_000)],
        steps={"align-7f3k.x1": [step]},
    )
    section = page[page.index('<section id="repairs">') : page.index('<section id="called">')]
    for told in (
        "1 failure · 1 repaired · 1 more attempt · 250 ms in repairs",
        "rule 2 of align, version 4",
        "job.peak_bytes = 7",
        "fault.category = job",
        "no such key",
        "re-submit",
        "more-memory",
    ):
        assert told in section, told
    assert section.count('<span class="pill mended">held</span>') == 2
    assert "mends align-7f3k:align" in page
    assert "<h2>Exlets</h2>" in page
    assert set(re.findall(r'href="#(case-\w+)"', page)) == set(re.findall(r'id="(case-\w+)"', page))
    Closed().feed(page)


def test_a_case_without_exceptions_has_no_repairs_on_its_page() -> None:
    page = render(a_case(), FLOW, [an_item_tried(1_000)])
    assert 'id="repairs"' not in page
    assert 'id="called"' not in page


def test_attempts_are_counted_for_the_repair_that_they_were_made_for() -> None:
    item = an_item_tried(1_000, 3_000, 5_000)
    first, second = a_decision(1, 1_000), a_decision(2, 3_000)
    assert costs([first, second], [item]) == {first.id: Cost(1, 250), second.id: Cost(1, 250)}
    ignored = a_decision(3, 5_000, exlet="", state="ignored", ended_at=0)
    assert costs([ignored], [item]) == {ignored.id: Cost(0, 0)}


def test_called_cases_are_linked_and_opened_on_the_page() -> None:
    called = a_case("align-7f3k.2", parent=CaseId("align-7f3k"))
    theirs = msgspec.structs.replace(an_item("inner", 1, [an_attempt(1, 0, 50)]), case=called.id)
    page = render(a_case(), FLOW, [], called=[called], called_items=[theirs])
    assert "<h2>Called cases</h2>" in page
    assert "called by align-7f3k" in page
    [anchor] = set(re.findall(r'href="#(case-\w+)"', page))
    assert f'<details class="other" id="{anchor}">' in page
    assert "<th>inner</th>" in page


def test_nothing_that_a_failure_says_becomes_markup() -> None:
    evil = a_decision(
        1,
        1_000,
        exlet=EVIL,
        note=EVIL,
        result=EVIL,
        rules=EVIL,
        item=ItemId(EVIL),
        exlet_case=CaseId(EVIL),
        fault=a_fault(EVIL),
        trail=[TrailStep(rule=1, held=True, condition=EVIL, values={EVIL: EVIL}, error=EVIL)],
    )
    other = a_case(EVIL, flow=EVIL, mends=CaseId(EVIL), mends_item=ItemId(EVIL), fault=a_fault(EVIL))
    step = HistoryEntry(at=START, case=other.id, source="engine", what=EVIL, name=EVIL, item=ItemId(EVIL), message=EVIL)
    page = render(a_case(), FLOW, [], called=[other], decisions=[evil], steps={EVIL: [step]})
    assert page.count("<script>") == 1
    assert "<img" not in page
    assert "\x1b" not in page


def test_very_many_repairs_are_bounded() -> None:
    page = render(a_case(), FLOW, [], decisions=[a_decision(number, number) for number in range(1_000)])
    assert page.count('class="failure repair') == 300
    assert "and 700 more" in page


def test_a_repair_is_told_in_the_words_of_its_rules_author_and_the_trail_is_folded() -> None:  # EX-11
    told = msgspec.structs.replace(a_decision(1, 1_000), reason="With more <memory> it does not fail.")
    page = render(a_case(), FLOW, [an_item_tried(1_000, 3_000)], decisions=[told])
    assert "<p>With more &lt;memory&gt; it does not fail.</p><details><summary>how the rules were evaluated" in page
    assert "· abort ·" not in page
    Closed().feed(page)


def test_a_failure_that_no_rule_fits_says_so_and_what_offers_one() -> None:  # EX-11
    ignored = msgspec.structs.replace(a_decision(1, 1_000), exlet="", exlet_case=None, state="ignored", result="")
    ignored = msgspec.structs.replace(ignored, group="3f9a1c2e", reason="", trail=[], ended_at=0)
    page = render(a_case(), FLOW, [an_item_tried(1_000)], decisions=[ignored])
    assert '<span class="pill failed">no rule fits</span>' in page
    assert "<code>mendflow failures show 3f9a1c2e</code>" in page
    assert "0 more attempts" not in page and "0 ms in repairs" not in page


def test_the_page_of_a_case_that_is_not_over_says_what_it_waits_for() -> None:
    waits = "big: no pilot can take it; `mendflow pilot --server URL` starts <one>"
    page = render(a_case(), FLOW, [], present=["case align is running.", waits])
    assert "<p>case align is running.</p>" in page
    assert "<code>mendflow pilot --server URL</code> starts &lt;one&gt;" in page
