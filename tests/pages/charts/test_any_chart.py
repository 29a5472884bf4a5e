"""Whatever numbers and names there are: a chart is whole, and nothing in it leaves its picture."""

from xml.etree import ElementTree

from hypothesis import given, settings
from hypothesis import strategies as st

from mendflow.pages.charts.drawing import draw_chart
from mendflow.pages.charts.frame import WIDTH
from mendflow.pages.charts.model import BarChart, BarSeries, Chart, LineChart, LineSeries, Unit
from mendflow.pages.charts.tables import csv_of
from tests.examples import examples

VALUES = st.floats(min_value=0, max_value=1e12, allow_nan=False, allow_infinity=False)
NAMES = st.text(max_size=60)
UNITS: st.SearchStrategy[Unit] = st.sampled_from(["number", "seconds", "time", "share", "bytes"])


@st.composite
def bar_charts(draw: st.DrawFn) -> BarChart:
    groups = draw(st.lists(NAMES, min_size=1, max_size=8))
    size = len(groups)
    series = [
        BarSeries(
            name=draw(NAMES),
            values=tuple(draw(st.lists(st.none() | VALUES, min_size=size, max_size=size))),
            errors=tuple(draw(st.lists(VALUES, min_size=size, max_size=size))) if draw(st.booleans()) else (),
        )
        for _ in range(draw(st.integers(1, 10)))
    ]
    return BarChart(
        title=draw(NAMES),
        groups=tuple(groups),
        series=tuple(series),
        unit=draw(UNITS),
        note=draw(NAMES),
        y_label=draw(NAMES),
    )


@st.composite
def line_charts(draw: st.DrawFn) -> LineChart:
    series = []
    for _ in range(draw(st.integers(1, 4))):
        points = sorted(draw(st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=30)))
        errors = draw(st.lists(VALUES, min_size=len(points), max_size=len(points))) if draw(st.booleans()) else []
        series.append(LineSeries(name=draw(NAMES), points=tuple(points), errors=tuple(errors)))
    return LineChart(
        title=draw(NAMES), series=tuple(series), unit=draw(UNITS), x_unit=draw(UNITS), steps=draw(st.booleans())
    )


@settings(max_examples=examples(60), deadline=None)
@given(bar_charts() | line_charts())
def test_any_chart_is_whole_and_stays_in_its_picture(chart: Chart) -> None:
    root = ElementTree.fromstring(draw_chart(chart))
    height = float(root.attrib["height"])
    for element in root.iter():
        for names, most in ((("x", "x1", "x2"), WIDTH), (("y", "y1", "y2"), height)):
            assert all(-1 <= float(element.get(name, 0)) <= most + 1 for name in names), element.attrib
        assert float(element.get("height", 0)) >= 0
    assert csv_of(chart)
