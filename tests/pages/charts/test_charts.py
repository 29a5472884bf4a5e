"""Charts: what is drawn is where the values say, told in words, harmless, and the same bytes each time."""

import re
from xml.etree import ElementTree

import pytest

from mendflow.pages.charts.drawing import draw_chart
from mendflow.pages.charts.frame import WIDTH
from mendflow.pages.charts.model import BarChart, BarSeries, Chart, LineChart, LineSeries, Unit
from mendflow.pages.charts.scales import axis, value_with_error
from mendflow.pages.charts.style import shorten_text, text_width, wrap_text
from mendflow.pages.charts.tables import csv_of

SVG = "{http://www.w3.org/2000/svg}"
BARS = BarChart(
    title="Stage-in",
    groups=("d1f1", "d3f3"),
    series=(
        BarSeries(name="cache", values=(10.0, 20.0), errors=(1.0, 2.0)),
        BarSeries(name="no cache", values=(40.0, 80.0), errors=(0.0, 5.0)),
    ),
    y_label="seconds",
    unit="seconds",
)
LINES = LineChart(
    title="Busy pilots",
    series=(
        LineSeries(name="direct", points=((0.0, 0.0), (600.0, 60.0), (3000.0, 0.0))),
        LineSeries(name="pilots", points=((0.0, 120.0), (1200.0, 0.0)), errors=(3.0, 0.0)),
    ),
    x_label="time",
    y_label="jobs",
    steps=True,
)


def read(chart: Chart) -> ElementTree.Element:
    return ElementTree.fromstring(draw_chart(chart))


def bars_in(root: ElementTree.Element, css: str) -> list[tuple[float, float]]:
    """Height and lower end of each bar of a colour; the key of the legend is not a bar."""
    rects = [rect for group in root.iter(f"{SVG}g") for rect in group.iter(f"{SVG}rect") if rect.get("class") == css]
    return [(float(rect.attrib["height"]), float(rect.attrib["y"]) + float(rect.attrib["height"])) for rect in rects]


def test_bars_are_as_high_as_their_values_and_stand_on_one_line() -> None:
    root = read(BARS)
    (low, base), (high, other_base) = bars_in(root, "f1")
    (lowest, _), _ = bars_in(root, "f0")
    assert high == pytest.approx(2 * low, abs=0.2)
    assert low == pytest.approx(4 * lowest, abs=0.4)
    assert base == other_base


def test_a_whisker_reaches_as_far_up_as_down_and_is_left_out_where_nothing_deviates() -> None:
    whiskers = [path.attrib["d"] for path in read(BARS).iter(f"{SVG}path") if path.get("class") == "whisker"]
    assert len(whiskers) == 3
    x, high, low = map(float, re.findall(r"[\d.]+", whiskers[-1])[:3])
    (_, _), (height, base) = bars_in(read(BARS), "f1")
    assert x > 0
    assert (high + low) / 2 == pytest.approx(base - height, abs=0.1)
    assert low - high == pytest.approx(height * 2 * 5 / 80, abs=0.2)


def test_no_bar_or_line_leaves_the_picture() -> None:
    for chart in (BARS, LINES):
        root = read(chart)
        height = float(root.attrib["height"])
        for element in root.iter():
            for name, most in (
                ("x", WIDTH),
                ("x1", WIDTH),
                ("x2", WIDTH),
                ("y", height),
                ("y1", height),
                ("y2", height),
            ):
                assert 0 <= float(element.get(name, 0)) <= most


def test_a_missing_value_is_a_dash_and_not_a_bar_of_nothing() -> None:
    chart = BarChart(title="t", groups=("a", "b"), series=(BarSeries(name="s", values=(None, 1.0)),))
    root = read(chart)
    assert len(bars_in(root, "f0")) == 1
    assert "–" in [text.text for text in root.iter(f"{SVG}text")]
    assert "a,s,,\n" in csv_of(chart)


def test_steps_hold_their_value_until_it_changes() -> None:
    first = next(path for path in read(LINES).iter(f"{SVG}path") if path.get("class") == "line s0")
    assert re.fullmatch(r"M[\d.]+ [\d.]+(H[\d.]+V[\d.]+){2}", first.attrib["d"])


def test_very_many_points_draw_no_more_than_can_be_seen_and_no_peak_is_lost() -> None:
    points = tuple((float(at), 500.0 if at == 123_456 else float(at % 3)) for at in range(200_000))
    text = draw_chart(LineChart(title="t", series=(LineSeries(name="s", points=points),), x_unit="number"))
    assert len(text) < 120_000
    heights = {float(y) for y in re.findall(r"L[\d.]+ ([\d.]+)", text)}
    assert min(heights) == pytest.approx(48 + 18, abs=1)


@pytest.mark.parametrize("chart", [BARS, LINES], ids=["bars", "lines"])
def test_a_chart_tells_itself_in_words_and_the_same_way_each_time(chart: Chart) -> None:
    root = read(chart)
    title, desc = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert title is not None and title.text == chart.title
    assert desc is not None and all(series.name in (desc.text or "") for series in chart.series)
    assert draw_chart(chart) == draw_chart(chart)
    assert root.get("role") == "img"


def test_text_from_outside_is_shown_and_never_obeyed() -> None:
    evil = '<script>alert("x")</script>&\x1b[31m'
    chart = BarChart(title=evil, groups=(evil,), series=(BarSeries(name=evil, values=(1.0,)),), note=evil, y_label=evil)
    assert "<script>" not in draw_chart(chart)
    assert not list(read(chart).iter(f"{SVG}script"))


def test_the_data_of_bars_is_a_row_for_each_bar() -> None:
    assert csv_of(BARS).splitlines() == [
        "group,series,mean,deviation",
        "d1f1,cache,10,1",
        "d1f1,no cache,40,0",
        "d3f3,cache,20,2",
        "d3f3,no cache,80,5",
    ]
    assert csv_of(LINES).splitlines()[:3] == ["time,series,jobs,deviation", "0,direct,0,", "600,direct,60,"]


@pytest.mark.parametrize(
    ("highest", "unit", "words"),
    [
        (0.0, "number", ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
        (97.0, "number", ["0", "20", "40", "60", "80", "100"]),
        (120.0, "number", ["0", "20", "40", "60", "80", "100", "120"]),
        (7.0, "number", ["0", "2", "4", "6", "8"]),
        (1_300_000.0, "number", ["0", "250,000", "500,000", "750,000", "1,000,000", "1,250,000", "1,500,000"]),
        (1.0, "share", ["0 %", "20 %", "40 %", "60 %", "80 %", "100 %"]),
        (0.04, "share", ["0 %", "1 %", "2 %", "3 %", "4 %"]),
        (3000.0, "time", ["0", "10 m", "20 m", "30 m", "40 m", "50 m"]),
        (2.1e9, "bytes", ["0", "500 MB", "1 GB", "1.5 GB", "2 GB", "2.5 GB"]),
    ],
)
def test_marks_stand_at_round_numbers_and_the_last_is_not_below_the_data(
    highest: float, unit: Unit, words: list[str]
) -> None:
    made = axis(highest, unit)
    assert made.words() == words
    assert made.ticks[-1] >= highest


def test_shares_never_have_a_mark_above_all() -> None:
    chart = BarChart(
        title="t", groups=("a",), series=(BarSeries(name="s", values=(1.0,), errors=(0.1,)),), unit="share"
    )
    assert "120 %" not in draw_chart(chart)


@pytest.mark.parametrize(
    ("value", "error", "unit", "text"),
    [
        (12.34, 0.5, "seconds", "12.3 s ± 0.5 s"),
        (0.731, 0.0, "share", "73.1 %"),
        (192.0, 0.0, "time", "3 m 12 s"),
        (None, 0.0, "number", "-"),
        (1234.5, 0.0, "number", "1,234"),
    ],
)
def test_a_value_is_told_with_its_unit_and_deviation(value: float | None, error: float, unit: Unit, text: str) -> None:
    assert value_with_error(value, error, unit) == text


def test_long_texts_are_cut_to_their_room() -> None:
    assert wrap_text("W2 one job makes files for two", 90, 3) == ["W2 one job", "makes files", "for two"]
    assert shorten_text("a very long name", 60).endswith("…")
    assert text_width(shorten_text("a very long name", 60)) <= 60


def test_many_long_names_get_a_legend_of_several_rows() -> None:
    series = tuple(BarSeries(name=f"a series with a long name {at}", values=(1.0,)) for at in range(9))
    names = [
        text
        for text in read(BarChart(title="t", groups=("g",), series=series)).iter(f"{SVG}text")
        if "series" in (text.text or "")
    ]
    assert len({text.attrib["y"] for text in names}) >= 2
    assert all(float(text.attrib["x"]) < WIDTH - 100 for text in names)


@pytest.mark.parametrize("values", [(1.0,), (float("nan"), 1.0), (-1.0, 1.0)])
def test_a_chart_that_makes_no_sense_is_our_own_mistake(values: tuple[float, ...]) -> None:
    with pytest.raises(AssertionError):
        BarChart(title="t", groups=("a", "b"), series=(BarSeries(name="s", values=values),))


@pytest.mark.parametrize("unit", ["number", "seconds", "time", "share", "bytes"])
@pytest.mark.parametrize("highest", [0.0, 5e-324, 1e-131, 1e-9, 1e-6])
def test_an_axis_of_values_that_are_almost_nothing_has_two_ends(highest: float, unit: Unit) -> None:
    found = axis(highest, unit)
    assert found.ticks[0] < found.ticks[-1] and 0 <= found.share(highest) <= 1
