"""The style of charts: colours for light, dark and print, and the width of texts.

The style is inside each SVG, so a chart looks the same alone, in a page and in a document. Its rules apply to charts
only. A chart has its own background, because the page around it may be light while the reader prefers dark."""

from mendflow.pages.formatting import escape_html

COLOURS = 8
DASHES = ("", "7 4", "2 3", "10 3 2 3", "5 2", "1 3", "12 4", "8 3 2 3 2 3")
"""Besides its colour a line has its own dash pattern, for black-and-white print and colour-blind readers."""
STYLE = """
svg.chart { --card: #ffffff; --ink: #1c2330; --quiet: #667085; --line: #dfe3ea; color: var(--ink);
  --c0: #2f6fed; --c1: #e59a1c; --c2: #0d8f9c; --c3: #b9a5f0;
  --c4: #1f9d61; --c5: #d6363f; --c6: #7a5af0; --c7: #98a2b3; }
@media (prefers-color-scheme: dark) {
  svg.chart { --card: #181e28; --ink: #e6eaf1; --quiet: #95a0b3; --line: #2b3443;
    --c0: #6c9cff; --c1: #f5ac45; --c2: #2aa3af; --c3: #cdbdff;
    --c4: #3ecf8a; --c5: #ff6b73; --c6: #9a80ff; --c7: #77839a; }
}
@media print {
  svg.chart { --card: #ffffff; --ink: #000000; --quiet: #444444; --line: #cccccc;
    --c0: #1d4ed8; --c1: #e59a1c; --c2: #0b7580; --c3: #b9a5f0;
    --c4: #14804a; --c5: #b3261e; --c6: #5b3fd0; --c7: #8a93a3; }
}
.chart text { font: 12px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: currentColor; }
.chart .title { font-size: 16px; font-weight: 600; letter-spacing: -0.01em; }
.chart .quiet { fill: var(--quiet); }
.chart .value { font-size: 10.5px; fill: var(--quiet); }
.chart .card { fill: var(--card); stroke: var(--line); }
.chart.bare { display: block; width: 100%; max-width: 940px; height: auto; margin: -12px auto 0; }
.chart.bare .card { stroke: none; }
.chart .grid { stroke: var(--line); stroke-width: 1; }
.chart .base { stroke: var(--quiet); stroke-width: 1; }
.chart .whisker { stroke: currentColor; stroke-width: 1.2; fill: none; }
.chart .halo { stroke: var(--card); stroke-width: 3.6; stroke-opacity: 0.55; fill: none; }
.chart .none { fill: var(--quiet); font-size: 11px; }
.chart .line { fill: none; stroke-width: 2; stroke-linejoin: round; }
.chart .band { stroke: none; fill-opacity: 0.16; }
"""
STYLE += "".join(
    f".chart .f{each} {{ fill: var(--c{each}); }} .chart .s{each} {{ stroke: var(--c{each}); }}\n"
    for each in range(COLOURS)
)
_NARROW, _WIDE = frozenset("iljtfrI.,:;'|! ()[]-/"), frozenset("mwMW%@…")


def text_width(text: str, size: float = 12.0) -> float:
    """The approximate width of the text; rather too large than too small."""
    ems = (0.36 if char in _NARROW else 0.92 if char in _WIDE else 0.7 if char.isupper() else 0.6 for char in text)
    return sum(ems) * size


def shorten_text(text: str, width: float, size: float = 12.0) -> str:
    if text_width(text, size) <= width:
        return text
    while text and text_width(text + "…", size) > width:
        text = text[:-1]
    return text.rstrip() + "…"


def wrap_text(text: str, width: float, lines_max: int) -> list[str]:
    """The text in lines that fit, at words; what does not fit into so many is cut."""
    lines: list[str] = []
    for word in text.split():
        joined = f"{lines[-1]} {word}" if lines else word
        if lines and text_width(joined) <= width:
            lines[-1] = joined
        else:
            lines.append(word)
    if len(lines) > lines_max:
        lines = [*lines[: lines_max - 1], " ".join(lines[lines_max - 1 :])]
    return [shorten_text(line, width) for line in lines]


def label(x: float, y: float, text: str, css: str = "", *, anchor: str = "start", turn: bool = False) -> str:
    """A piece of text; escaping happens only here."""
    classes = f' class="{css}"' if css else ""
    placed = "" if anchor == "start" else f' text-anchor="{anchor}"'
    turned = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if turn else ""
    return f'<text{classes} x="{x:.1f}" y="{y:.1f}"{placed}{turned}>{escape_html(text)}</text>'


def line(css: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="{css}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'
