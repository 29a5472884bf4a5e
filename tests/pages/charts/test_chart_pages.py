"""Figures as files, and the page that gathers them: whole, harmless, and its styles allowed by its own policy."""

import base64
import hashlib
import re
from pathlib import Path

from mendflow.pages.charts.model import BarChart, BarSeries
from mendflow.pages.charts.pages import ChartTable, Figure, page, write_figures

CHART = BarChart(title="Hits", groups=("W1",), series=(BarSeries(name="C3", values=(0.9,)),), unit="share")


def test_a_figure_is_written_as_a_drawing_and_its_data(tmp_path: Path) -> None:
    written = write_figures(tmp_path / "new", [Figure(name="figure-12", chart=CHART)])
    assert [path.name for path in written] == ["figure-12.svg", "figure-12.csv"]
    assert written[0].read_text().startswith("<svg")
    assert written[1].read_text() == "group,series,mean,deviation\nW1,C3,0.9,\n"


def test_a_page_allows_exactly_the_styles_that_stand_in_it() -> None:
    text = page("Title", "Intro", [Figure(name="a", chart=CHART), Figure(name="b", chart=CHART)])
    policy = text.split('Content-Security-Policy" content="')[1].split('"')[0]
    for style in re.findall(r"<style>(.*?)</style>", text, re.DOTALL):
        digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert "script-src" not in policy
    assert "default-src 'none'" in policy


def test_a_page_shows_tables_numbers_and_text_and_obeys_none() -> None:
    table = ChartTable(title="Claims", heads=("claim",), rows=(("<b>x</b>",), ("a sentence " * 8,)))
    text = page("T", "One.\n\nTwo <i>.", [Figure(name="a", chart=CHART, text="Why")], [table], [("1 h", "turnaround")])
    assert "<b>x</b>" not in text
    assert "<i>" not in text
    for part in ("&lt;b&gt;x&lt;/b&gt;", "<p>One.</p>", "<p>Why</p>", "<b>1 h</b>", '<td class="remark">'):
        assert part in text
