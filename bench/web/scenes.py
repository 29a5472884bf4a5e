"""What is looked at, and what is wanted of it."""

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from playwright.sync_api import Browser

from bench.page import ruled
from bench.web.browser import NOTHING, SCROLL, SCROLL_TIMELINE, ZOOM, Frames, Shown, fresh
from bench.web.fill import BIG, SWEEP
from bench.web.server import FilledServer

ROW: Final = "[role=grid] [data-row]"
USEFUL: Final = {
    "home": ("/", ".tile-count", ""),
    "cases": ("/cases", ROW, ""),
    "large case: graph": (f"/cases/{BIG}", ".case-node", "measure"),
    "large case: timeline": (f"/cases/{BIG}?view=timeline", "canvas.timeline-canvas", ""),
    "large case: items": (f"/cases/{BIG}?view=items", ROW, ""),
    "large case: failed items": (f"/cases/{BIG}?view=items&state=failed", ROW, ""),
    "large case: items by a condition": (f"/cases/{BIG}?view=items&where=fault.category%20%3D%3D%20'job'", ROW, ""),
    "large case: history": (f"/cases/{BIG}?view=history", ROW, ""),
    "large case: full history, begun": (f"/cases/{BIG}?view=history&full=yes", ROW, ""),
    "large case: full history": (f"/cases/{BIG}?view=history&full=yes", ".toolbar .muted", "events$"),
    "rule sets": ("/rules", ROW, ""),
    "rules of a set": (f"/rules/{SWEEP}", ".rule-row", ""),
    "pilots": ("/pilots", ROW, ""),
}
"""Where, and which element makes the page useful."""
ASSETS: Final = Path(__file__).parents[2] / "src" / "mendflow" / "server" / "web_files" / "assets"
SETTLE_S: Final = 2.0


class Opened(NamedTuple):
    name: str
    shown: Shown
    server_ms: float
    load: float


class Moved(NamedTuple):
    name: str
    frames: Frames
    load: float


def open_all(browser: Browser, server: FilledServer) -> list[Opened]:
    """Each page in a profile of its own, with nothing in its cache; the server has been asked for nothing of it."""
    found = []
    for name, (path, selector, has) in USEFUL.items():
        with fresh(browser, server.url) as page:
            before = server.processor_s()
            shown = page.show(path, selector, has)
            found.append(Opened(name, shown, 1000 * (server.processor_s() - before), os.getloadavg()[0]))
            time.sleep(SETTLE_S)
    return found


def move_all(browser: Browser, server: FilledServer) -> list[Moved]:
    """Frames while somebody scrolls and zooms; and while nobody does, for what this machine can show at all."""
    found: list[Moved] = []

    def note(name: str, frames: Frames) -> None:
        found.append(Moved(name, frames, os.getloadavg()[0]))

    with fresh(browser, server.url) as page:
        page.show("/pilots", ROW)
        time.sleep(SETTLE_S)
        note("nothing moves", page.frames(NOTHING))
    with fresh(browser, server.url) as page:
        page.show(f"/cases/{BIG}?view=items", ROW)
        time.sleep(SETTLE_S)
        note("items scroll", page.frames(SCROLL))
    with fresh(browser, server.url) as page:
        page.show(f"/cases/{BIG}?view=timeline", "canvas.timeline-canvas")
        page.until(".timeline .toolbar .muted", r"items ·")
        time.sleep(SETTLE_S)
        note("timeline is zoomed", page.frames(ZOOM))
        note("timeline scrolls", page.frames(SCROLL_TIMELINE))
    return found


def bundle() -> str:
    """What the browser gets first, and what only some pages load, compressed."""
    sizes = {path.name: path.stat().st_size for path in ASSETS.iterdir()}
    largest = sorted(sizes.items(), key=lambda each: -each[1])[:4]
    named = ", ".join(f"{name.rpartition('-')[0]} {size / 1000:,.0f} kB" for name, size in largest)
    return f"{len(sizes)} files, {sum(sizes.values()) / 1000:,.0f} kB before they are compressed; the largest: {named}"


def opened_table(opened: Sequence[Opened]) -> str:
    columns = ("page, nothing cached", "ms until useful", "page's processor ms", "server's processor ms", "kB", "load")
    rows: list[tuple[str, ...]] = [
        (
            each.name,
            f"{each.shown.seen_ms:,.0f}",
            f"{each.shown.page_ms:,.0f}",
            f"{each.server_ms:,.0f}",
            f"{each.shown.sent_bytes / 1000:,.0f}",
            f"{each.load:.1f}",
        )
        for each in opened
    ]
    return ruled(columns, rows)


def moved_table(moved: Sequence[Moved]) -> str:
    columns = ("what moves", "frames/s", "frames above 33 ms", "long tasks", "longest ms", "load")
    rows: list[tuple[str, ...]] = [
        (
            each.name,
            f"{each.frames.per_s:.0f}",
            f"{each.frames.slow_share:.0%}",
            str(len(each.frames.long_ms)),
            f"{max(each.frames.long_ms, default=0):.0f}",
            f"{each.load:.1f}",
        )
        for each in moved
    ]
    return ruled(columns, rows)
