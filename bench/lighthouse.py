"""What Lighthouse says of the web app: `python -m bench.lighthouse [--write]`.

A real server on a filled store (bench.web), and Lighthouse in a real Chromium on Home, Cases and a case. Lighthouse
loads a page and works out how long that takes on the machine and the line of its preset: `desktop` is a computer with a
line of 10 Mbit/s, `mobile` a phone four times as slow with 1.6 Mbit/s. The app is made for desks: `desktop` is what is
aimed at, and `mobile` is told beside it. Of several runs the median counts. A run that Chromium failed says nothing of
the page, so it is made again, and that is told. npx fetches Lighthouse once."""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

from bench.page import ruled, write_section
from bench.run import machine, tell
from bench.web.__main__ import QUICK, USUAL
from bench.web.fill import BIG
from bench.web.server import FilledServer
from tests.servers import chromium

TITLE: Final = "The web app by Lighthouse"
LIGHTHOUSE: Final = "lighthouse@12.8.2"
"""The last one that runs with Node.js 20."""
PAGES: Final = {"home": "/", "cases": "/cases", "case": f"/cases/{BIG}"}
PRESETS: Final = ("desktop", "mobile")
REPEATS: Final = 2
"""So often at most a run is made again that Chromium failed."""
CATEGORIES: Final = ("performance", "accessibility", "best-practices")
FIGURES: Final = {
    "first-contentful-paint": "first paint ms",
    "largest-contentful-paint": "largest paint ms",
    "total-blocking-time": "blocked ms",
    "cumulative-layout-shift": "shift",
    "total-byte-weight": "kB",
}


class RunFailed(Exception):
    """Lighthouse has no report of a run: the message says why, as Lighthouse does."""


class Audited(NamedTuple):
    """The scores of a page, up to 100, and its figures. `why` are audits that are not passed."""

    page: str
    preset: str
    scores: dict[str, float]
    figures: dict[str, float]
    why: tuple[str, ...]


def audit(url: str, page: str, preset: str, runs: int) -> Audited:
    found = [_run_or_repeat(url + PAGES[page], preset) for _ in range(runs)]
    return Audited(
        page,
        preset,
        {name: median(100 * each["categories"][name]["score"] for each in found) for name in CATEGORIES},
        {name: median(each["audits"][name]["numericValue"] for each in found) for name in FIGURES},
        tuple(sorted({why for each in found for why in _not_passed(each)})),
    )


def _run_or_repeat(url: str, preset: str) -> Any:
    for _ in range(REPEATS):
        try:
            return _run(url, preset)
        except RunFailed as failed:
            tell(f"a run of {url}, {preset}, is made again, because it failed: {failed}")
    return _run(url, preset)


def _run(url: str, preset: str) -> Any:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "report.json"
        command = ["npx", "--yes", LIGHTHOUSE, url, "--quiet", "--output=json", f"--output-path={path}"]
        command += [f"--only-categories={','.join(CATEGORIES)}", f"--chrome-flags=--headless=new {_flags()}"]
        command += ["--preset=desktop"] if preset == "desktop" else []
        environment = {**os.environ, "CHROME_PATH": chromium.executable()}
        done = subprocess.run(command, env=environment, cwd=folder, stderr=subprocess.PIPE, text=True)
        report = json.loads(path.read_text()) if path.exists() else {}
        if problem := report.get("runtimeError"):
            raise RunFailed(f"{problem['code']}: {problem['message']}")
        if done.returncode or not report:
            raise RunFailed(f"exit code {done.returncode}: {done.stderr.strip()}")
        return report


def _flags() -> str:
    return " ".join(chromium.FLAGS)


def _not_passed(report: Any) -> list[str]:
    """Audits with a weight, or with time to gain, that are not passed."""
    weighty = {each["id"] for name in CATEGORIES for each in report["categories"][name]["auditRefs"] if each["weight"]}
    found = []
    for name, each in report["audits"].items():
        gain = sum((each.get("metricSavings") or {}).values())
        if each["score"] is not None and each["score"] < 0.9 and (name in weighty or gain > 0):
            found.append(f"{name}: {each['title']} {each.get('displayValue', '')}".strip())
    return found


def table(audited: Sequence[Audited]) -> str:
    columns = ("page", "preset", *CATEGORIES, *FIGURES.values())
    rows: list[tuple[str, ...]] = []
    for each in audited:
        figures = dict(each.figures)
        figures["total-byte-weight"] /= 1000
        shown = [f"{value:.2f}" if name.endswith("shift") else f"{value:,.0f}" for name, value in figures.items()]
        rows.append((each.page, each.preset, *(f"{each.scores[name]:.0f}" for name in CATEGORIES), *shown))
    return ruled(columns, rows)


def body(audited: Sequence[Audited], runs: int, what: str) -> str:
    lines = [
        f"`python -m bench.lighthouse --write` made this section with {LIGHTHOUSE.replace('@', ' ')}, Chromium and a"
        " real server",
        f"on {what}. Nothing is in the browser's cache. Lighthouse works its times out from what it",
        "sees, for the computer of its preset: `desktop` has a line of 10 Mbit/s, `mobile` is a phone, four times as",
        f"slow, with 1.6 Mbit/s. Of {runs} runs the median is told.",
        "",
        table(audited),
        "",
        f"Machine: {machine()}; load {os.getloadavg()[0]:.1f} at the end.",
    ]
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.lighthouse", description="The web app by Lighthouse.")
    parser.add_argument("--quick", action="store_true", help="a small store")
    parser.add_argument("--at", default="", metavar="URL", help="a server that runs already, filled by bench.web")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--page", choices=PAGES, action="append", help="only this page")
    parser.add_argument("--preset", choices=PRESETS, action="append", help="only this preset")
    parser.add_argument("--write", action="store_true", help="write the section in docs/understand/benchmarks.md")
    options = parser.parse_args(arguments)
    amounts = QUICK if options.quick else USUAL
    what = f"a store with {amounts.cases:,} cases, of which one has {amounts.items:,} items"
    if options.at:
        audited = _all(options.at, options)
    else:
        with FilledServer(amounts) as server:
            audited = _all(server.url, options)
    text = body(audited, options.runs, what)
    print(text)
    if options.write:
        write_section(TITLE, text)
    return 0


def _all(url: str, options: argparse.Namespace) -> list[Audited]:
    found = []
    for preset in options.preset or PRESETS:
        for page in options.page or PAGES:
            found.append(audit(url, page, preset, options.runs))
            tell(f"{page}, {preset}: {found[-1].scores} {found[-1].figures}")
            for why in found[-1].why:
                tell(f"  {why}")
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
