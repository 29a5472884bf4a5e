"""The report is one page that needs nothing else, whatever the jobs said and however many they were."""

import base64
import hashlib
import re
from html.parser import HTMLParser

import msgspec
import pytest

from mendflow.core.model.expr import Expr
from mendflow.core.model.faults import Category, Fault
from mendflow.core.model.flow import (
    Assign,
    Branch,
    Call,
    Catch,
    Choose,
    Copy,
    Empty,
    Flow,
    ForEach,
    JobActivity,
    LinkSource,
    Parallel,
    Receive,
    Scope,
    Sequence,
    UserTask,
)
from mendflow.core.model.ids import CaseId, FlowName, ItemId, JobId, PilotId
from mendflow.core.model.templates import ResourceTemplates
from mendflow.core.model.values import FileRef
from mendflow.core.model.views import AttemptView, CaseView, ItemView, NameCount
from mendflow.pages.layout import layered_layout
from mendflow.pages.page import render

START = 1_760_000_000_000
EVIL = "</script><script>alert(1)</script>\"'><img src=x onerror=alert(2)>\x1b[31m\x1b]0;owned\x07"


def a_fault(message: str = "exit code 3", log_tail: str = "") -> Fault:
    return Fault(name="jobFailed", category=Category.JOB, message=message, exit_code=3, log_tail=log_tail)


def an_attempt(number: int, start_ms: int, took_ms: int, wrong: Fault | None = None, end: str = "") -> AttemptView:
    return AttemptView(
        number=number,
        pilot=PilotId("pilot-1"),
        granted_at=START + start_ms,
        started_at=START + start_ms + 20,
        ended_at=START + start_ms + took_ms,
        end=end or ("failed" if wrong else "completed"),
        fault=wrong,
        cpu_ms=took_ms // 2,
        peak_bytes=120_000_000 + took_ms * 1000,
    )


def an_item(
    name: str, serial: int, attempts: list[AttemptView], *, state: str = "completed", turn: int | None = None
) -> ItemView:
    return ItemView(
        case=CaseId("align-7f3k"),
        item=ItemId(name if turn is None else f"{name}[{turn}]"),
        name=name,
        kind="job",
        serial=serial,
        state=state,  # type: ignore[arg-type]  # the words of the literal, as tests write them
        job=JobId(f"align-7f3k/{serial}"),
        attempts=attempts,
        created_at=attempts[0].granted_at - 400 if attempts else START,
        ended_at=attempts[-1].ended_at if attempts else 0,
        fault=attempts[-1].fault if attempts else None,
        command=f"run {name}",
    )


def a_flow() -> Flow:
    """split, then a loop of align, then merge and a check with a choice; a report hangs on both."""
    align = ForEach(
        name="align",
        targets=("split-align",),
        sources=(LinkSource("align-merge"),),
        join="all",
        items="${{ jobs.split.outputs }}",
        body=JobActivity(
            name="align.iteration",
            label="align",
            command="align ${{ item }}",
            retries=2,
            resources=ResourceTemplates(memory_bytes=200_000_000),
        ),
    )
    approve = Scope(
        name="approval",
        targets=("split-approval",),
        sources=(LinkSource("approval-report", when=Expr("true")),),
        body=Sequence(
            name="steps", body=(JobActivity(name="draft", command="true"), UserTask(name="approve", role="lead"))
        ),
        catches=(Catch(body=JobActivity(name="apologise", command="true"), fault="rejected"),),
    )
    check = Choose(
        name="check",
        targets=("merge-check",),
        sources=(LinkSource("check-report"),),
        branches=(Branch(Expr("jobs.merge.outputs.size > 10.0"), JobActivity(name="deep-check", command="true")),),
        otherwise=Call(name="quick-check", flow="quick"),
    )
    return Flow(
        name=FlowName("align"),
        description="Align all samples, merge them, and write a report.",
        body=Parallel(
            name="main",
            links=("split-align", "align-merge", "merge-check", "check-report", "split-approval", "approval-report"),
            branches=(
                JobActivity(
                    name="split", command="split", sources=(LinkSource("split-align"), LinkSource("split-approval"))
                ),
                align,
                JobActivity(
                    name="merge", command="merge", targets=("align-merge",), sources=(LinkSource("merge-check"),)
                ),
                check,
                approve,
                JobActivity(name="report", command="report", targets=("check-report", "approval-report"), join="all"),
            ),
        ),
    )


def a_case(status: str = "failed", counts: list[NameCount] | None = None) -> CaseView:
    return CaseView(
        id=CaseId("align-7f3k"),
        flow="align",
        digest="d" * 64,
        status=status,  # type: ignore[arg-type]  # the words of the literal, as tests write them
        started_at=START,
        ended_at=START + 42_000,
        outputs={"table": FileRef(sha256="ab" * 32, bytes=1_234_567, name="table.csv").as_value(), "total": 42},
        fault=a_fault("align[7]: exit code 3") if status == "failed" else None,
        counts=counts or [],
    )


def a_sample() -> tuple[CaseView, list[ItemView]]:
    """A case with everything in it: done, mended, failed, waiting and skipped items."""
    log = "reading sample-7\nTraceback (most recent call last):\n  File 'align.py', line 12\nValueError: bad header\n"
    items = [an_item("split", 1, [an_attempt(1, 100, 4000)])]
    for turn in range(24):
        start, took = 4500 + (turn // 4) * 3000, 2500 + (turn * 377) % 1900
        tries = [an_attempt(1, start, took)]
        if turn % 6 == 1:
            lost = Fault(name="pilotLost", category=Category.RESOURCE, message="pilot-2 was lost")
            tries = [an_attempt(1, start, 900, lost, "lost"), an_attempt(2, start + 1500, took)]
        state = "completed"
        if turn == 7:
            tries = [an_attempt(n + 1, start + 1600 * n, 1200, a_fault(log_tail=log)) for n in range(3)]
            state = "failed"
        items.append(an_item("align", 2 + turn, tries, state=state, turn=turn))
    items.append(an_item("draft", 30, [an_attempt(1, 4200, 3000)]))
    items.append(an_item("approve", 31, [], state="waiting"))
    items.append(an_item("merge", 32, [], state="skipped"))
    counts = [
        NameCount(name="split", kind="job", done=1),
        NameCount(name="align", kind="job", done=23, failed=1, mended=3),
        NameCount(name="draft", kind="job", done=1),
        NameCount(name="approve", kind="user-task", waiting=1),
        NameCount(name="merge", kind="job", skipped=1),
    ]
    return a_case(counts=counts), items


VOID = {"meta", "br", "input", "img"}


class Page(HTMLParser):
    """Reads a page as a browser would: which elements, which attributes, properly nested or not."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.texts: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(self.texts)


def test_the_page_has_every_section_and_the_figures() -> None:
    case, items = a_sample()
    page = Page(render(case, a_flow(), items))
    for title in ("Flow", "Timeline", "Failures", "Resources", "Outputs", "Inputs", "Items"):
        assert title in page.texts
    assert "42.0 s" in page.texts
    for name in ("split", "align", "merge", "deep-check", "quick-check", "draft", "approve", "apologise", "report"):
        assert name in page.texts
    assert "23 done (3 mended), 1 failed" in page.text
    assert "table.csv" in page.text


def test_failures_are_grouped_by_name_and_message_with_a_log_tail() -> None:
    case, items = a_sample()
    text = render(case, a_flow(), items)
    assert text.count('<details class="failure') == 2  # three failed attempts of one item are one cause
    assert "ValueError: bad header" in text
    assert "3 mended" in text
    assert "3 failed attempts" in text


def test_attempts_are_visible_and_mended_items_marked() -> None:
    case, items = a_sample()
    text = render(case, a_flow(), items)
    assert "align[1], attempt 1: lost" in text
    assert "align[1], attempt 2: completed" in text
    assert "align[1] ✚" in text
    assert "align[0] ✚" not in text


def test_an_attempt_that_was_given_back_unstarted_was_never_made() -> None:
    given_back = an_attempt(1, 0, 500, end="returned")
    text = render(a_case("completed"), a_flow(), [an_item("split", 1, [given_back, an_attempt(2, 600, 500)])])
    assert "split ✚" not in text
    assert "attempt 1" not in text
    assert "split, attempt 2: completed" in text


def test_arrows_follow_the_links_of_the_flow() -> None:
    case, items = a_sample()
    text = render(case, a_flow(), items)
    assert text.count('class="arrow"') == 6  # five plain links and one step of the sequence
    assert text.count('class="arrow dashed"') == 1  # the link with a condition


def test_nothing_is_loaded_and_only_the_pages_own_script_may_run() -> None:
    case, items = a_sample()
    text = render(case, a_flow(), items)
    page = Page(text)
    assert page.tags.count("script") == 1
    assert not [tag for tag in page.tags if tag in ("link", "img", "iframe", "object", "form", "base")]
    for _, name, value in page.attributes:
        assert not name.startswith("on")
        assert name not in ("src", "style", "action")
        assert name != "href" or value.startswith("#")
    assert "http:" not in text
    assert "https:" not in text
    policy = next(value for tag, name, value in page.attributes if tag == "meta" and "script-src" in value)
    assert "default-src 'none'" in policy
    for element in ("script", "style"):
        content = re.search(f"<{element}>(.*?)</{element}>", text, re.DOTALL)
        assert content is not None
        digest = base64.b64encode(hashlib.sha256(content[1].encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy


def test_hostile_names_outputs_messages_and_logs_stay_text() -> None:
    evil = EVIL
    fault = msgspec.structs.replace(a_fault(evil, log_tail=evil), name=evil)
    item = an_item(evil, 1, [an_attempt(1, 0, 500, fault)], state="failed")
    item = msgspec.structs.replace(item, item=ItemId(evil), command=evil, log_tail=evil, kind=evil, fault=fault)
    counts = [NameCount(name=evil, kind="job", failed=1)]
    case = msgspec.structs.replace(
        a_case("failed", counts),
        id=CaseId(evil),
        outputs={evil: evil, "list": [evil]},
        inputs={evil: evil},
        fault=fault,
    )
    body = Sequence(
        name="s", body=(JobActivity(name=evil, command=evil), JobActivity(name="b" + evil, label=evil, command="x"))
    )
    flow = Flow(name=FlowName(evil), description=evil, body=body)
    text = render(case, flow, [item], version=evil)
    page = Page(text)
    assert page.tags.count("script") == 1
    assert "img" not in page.tags
    assert not [name for _, name, _ in page.attributes if name.startswith("on")]
    assert "alert(1)" in page.text
    assert "\x1b" not in text


def test_a_case_without_items_has_a_page() -> None:
    flow = Flow(name=FlowName("nothing"), body=Parallel(name="main", branches=()))
    page = Page(render(a_case("completed"), flow, []))
    assert "Nothing has run." in page.texts
    assert "Nothing failed." in page.texts


def test_messages_that_were_taken_stand_in_the_timeline_at_their_moment() -> None:
    flow = Flow(name=FlowName("asked"), body=Receive(name="order", channel="orders"))
    case = a_case("completed")
    taken = ItemView(
        case=case.id,
        item=ItemId("order"),
        name="order",
        kind="receive",
        serial=0,
        state="completed",
        ended_at=case.started_at + 1,
    )
    page = Page(render(case, flow, [taken]))
    assert "Nothing has run." not in page.texts
    assert "order: completed, 0 ms" in page.text


@pytest.mark.full
def test_twenty_thousand_items_stay_below_two_megabytes() -> None:
    wrong = a_fault(log_tail="x" * 8000)
    items = [
        an_item(
            "align",
            serial,
            [an_attempt(1, serial, 700, wrong), an_attempt(2, serial + 800, 300)]
            if serial % 10 == 0
            else [an_attempt(1, serial, 700)],
            turn=serial,
        )
        for serial in range(20_000)
    ]
    counts = [NameCount(name="align", kind="job", done=20_000, mended=2_000)]
    text = render(a_case("completed", counts), a_flow(), items)
    assert len(text.encode()) < 2_000_000
    page = Page(text)
    assert "20,000" in page.text
    assert "each band shows how many attempts ran at once" in page.text
    assert "1,500 of 20,000 items" in page.text


def test_many_different_causes_stay_bounded() -> None:
    items = [
        an_item("a", n, [an_attempt(1, n, 5, a_fault(f"cause {n}", "y" * 9000))], state="failed") for n in range(3000)
    ]
    text = render(a_case(), a_flow(), items)
    assert len(text.encode()) < 2_000_000
    assert "more cause" in text


def test_a_flow_too_large_to_draw_says_so() -> None:
    jobs = tuple(JobActivity(name=f"j{n}", command="true") for n in range(700))
    text = render(a_case(), Flow(name=FlowName("wide"), body=Parallel(name="main", branches=jobs)), [])
    assert "701 activities, too many to draw" in text


def test_a_box_stands_right_of_all_that_it_hangs_on_and_over_none() -> None:
    sizes = [(100.0, 40.0)] * 7
    edges = [(0, 1), (0, 2), (1, 3), (2, 3), (0, 3), (3, 4), (5, 4), (1, 6)]
    placed = layered_layout(sizes, edges)
    for start, end in edges:
        assert placed.x[start] + 100 < placed.x[end]
    for one in range(7):
        for other in range(one):
            apart = abs(placed.x[one] - placed.x[other]) >= 100 or abs(placed.y[one] - placed.y[other]) >= 40
            assert apart
    assert min(placed.y) >= 0
    assert max(placed.y) + 40 <= placed.height


def test_a_circle_of_links_is_drawn_all_the_same() -> None:
    ring = tuple(
        JobActivity(name=f"j{n}", command="true", sources=(LinkSource(f"l{n}"),), targets=(f"l{(n + 2) % 3}",))
        for n in range(3)
    )
    flow = Flow(name=FlowName("ring"), body=Parallel(name="main", links=("l0", "l1", "l2"), branches=ring))
    assert render(a_case(), flow, []).count('class="arrow"') == 3


def drawn(*branches: JobActivity) -> str:
    flow = Flow(name=FlowName("wide"), body=Parallel(name="all", branches=branches))
    case = CaseView(id=CaseId("wide-1"), flow="wide", digest="", status="completed", started_at=START, ended_at=START)
    return render(case, flow, [])


def test_many_independent_jobs_are_drawn_in_several_columns() -> None:
    page = drawn(*(JobActivity(name=f"job-{n}", command="true") for n in range(60)))
    boxes = set(re.findall(r'class="node" x="([\d.]+)" y="([\d.]+)"', page))
    assert len(boxes) == 60
    assert len({x for x, _ in boxes}) == 6
    assert len({y for _, y in boxes}) == 10


def test_a_long_name_is_cut_to_its_box_and_whole_in_its_title() -> None:
    name = "ALIGN_AND_SORT_EVERY_SAMPLE_OF_THE_COHORT"
    page = drawn(JobActivity(name=name, command="true"))
    (shown,) = re.findall(r'<text class="name"[^>]*>([^<]*)</text>', page)
    assert shown.endswith("…")
    assert len(shown) * 9 < 200
    assert f"<title>{name} (job)" in page


def test_names_that_nobody_gave_are_not_drawn() -> None:
    setting = Assign(name="night.variables", copies=(Copy(to="a", value=1),))
    chosen = Choose(
        name="step-2",
        branches=(Branch(when=Expr("true"), body=JobActivity(name="yes", command="true")),),
        otherwise=Empty(name="step-2.otherwise"),
    )
    steps = Sequence(name="night.steps", body=(JobActivity(name="first", command="true"), chosen))
    flow = Flow(name=FlowName("night"), body=Sequence(name="night.flow", body=(setting, steps)))
    case = CaseView(id=CaseId("night-1"), flow="night", digest="", status="completed", started_at=START, ended_at=START)
    page = render(case, flow, [])
    for name in ("night.variables", "night.steps", "night.flow", "step-2"):
        assert name not in page
    assert "first" in page and "yes" in page


def test_memory_that_nobody_measured_is_a_dash() -> None:
    attempt = msgspec.structs.replace(an_attempt(1, 0, 10), peak_bytes=0)
    flow = Flow(name=FlowName("night"), body=JobActivity(name="a", command="true"))
    case = CaseView(id=CaseId("night-1"), flow="night", digest="", status="completed", started_at=START, ended_at=START)
    page = render(case, flow, [an_item("a", 1, [attempt])])
    assert "<b>-</b><span>peak memory</span>" in page
    assert "0 B" not in page


def test_called_cases_are_listed_with_their_counts() -> None:
    flow = Flow(name=FlowName("night"), body=Call(name="deep", flow="inner"))
    case = CaseView(id=CaseId("night-1"), flow="night", digest="", status="completed", started_at=START, ended_at=START)
    counts = [NameCount(name="a", kind="job", done=41, cancelled=7)]
    inner = msgspec.structs.replace(case, id=CaseId("night-1.2"), flow="inner", parent=case.id, counts=counts)
    page = render(case, flow, [], called=[inner])
    assert "night-1.2" in page
    assert "<td>41</td>" in page and "<td>7</td>" in page
