"""Pages in a real Chromium, and what they took: until something useful is seen, over the wire, for each frame."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from playwright.sync_api import Browser, CDPSession, Page, sync_playwright

from tests.servers import chromium

DESK: Final = {"width": 1440, "height": 900}
SLOW_FRAME_MS: Final = 33.4
"""Two frames of a screen with 60 in a second."""

_UNTIL = """([selector, has]) => new Promise((seen, gone) => {
  const said = (each) => each.textContent + (each.getAttribute("aria-label") ?? "");
  const fits = (each) => each.checkVisibility() && (!has || new RegExp(has).test(said(each)));
  const look = () => {
    if ([...document.querySelectorAll(selector)].some(fits)) seen(performance.now());
    else if (performance.now() > 180000) gone(new Error("not seen: " + selector));
    else requestAnimationFrame(look);
  };
  look();
})"""

_FRAMES = """([act, count]) => new Promise((over) => {
  const step = (0, eval)("(" + act + ")")();
  const took = [], long = [];
  const watch = new PerformanceObserver((list) => long.push(...list.getEntries().map((each) => each.duration)));
  watch.observe({ type: "longtask" });
  let last = 0;
  const frame = (at) => {
    if (last) took.push(at - last);
    last = at;
    if (took.length >= count) {
      setTimeout(() => { watch.disconnect(); over({ took, long }); }, 300);
      return;
    }
    step(took.length);
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
})"""

SCROLL: Final = """() => {
  const box = document.querySelector('[role=grid][aria-label="Items"]');
  return () => { box.scrollTop += 90; };
}"""
ZOOM: Final = """() => {
  const board = document.querySelector('.timeline-scroll canvas');
  const place = board.getBoundingClientRect();
  const at = { clientX: place.left + 700, clientY: place.top + 200, ctrlKey: true, bubbles: true, cancelable: true };
  return (turn) => board.dispatchEvent(new WheelEvent("wheel", { ...at, deltaY: turn % 120 < 60 ? -40 : 40 }));
}"""
SCROLL_TIMELINE: Final = """() => {
  const box = document.querySelector('.timeline-scroll');
  return (at) => { box.scrollTop += 2400; };
}"""
NOTHING: Final = "() => () => {}"


class Shown(NamedTuple):
    """`seen_ms`: from the beginning of the navigation until it was there. `page_ms`: processor time of
    the page's main thread by then. `sent_bytes`: over the wire, headers too."""

    seen_ms: float
    page_ms: float
    sent_bytes: int
    requests: int


class Frames(NamedTuple):
    took_ms: Sequence[float]
    long_ms: Sequence[float]

    @property
    def per_s(self) -> float:
        return 1000 * len(self.took_ms) / sum(self.took_ms)

    @property
    def slow_share(self) -> float:
        return sum(each > SLOW_FRAME_MS for each in self.took_ms) / len(self.took_ms)


class MeasuredPage:
    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        self._url = url
        self._wire: CDPSession = page.context.new_cdp_session(page)
        self._wire.send("Network.enable")
        self._wire.send("Performance.enable", {"timeDomain": "threadTicks"})
        self._bytes = self._requests = 0
        self._wire.on("Network.loadingFinished", self._hear)

    def _hear(self, told: dict[str, Any]) -> None:
        self._bytes += int(told["encodedDataLength"])
        self._requests += 1

    def show(self, path: str, selector: str, has: str = "") -> Shown:
        """Open an address, and wait until there is what it is opened for."""
        before = self._busy_s()
        self._bytes = self._requests = 0
        self.page.goto(f"{self._url}{path}", wait_until="commit")
        seen_ms = self.until(selector, has)
        return Shown(seen_ms, 1000 * max(0.0, self._busy_s() - before), self._bytes, self._requests)

    def until(self, selector: str, has: str = "") -> float:
        return float(self.page.evaluate(_UNTIL, [selector, has]))

    def frames(self, act: str, count: int = 240) -> Frames:
        found = self.page.evaluate(_FRAMES, [act, count])
        return Frames(found["took"], found["long"])

    def heap_bytes(self) -> int:
        """What is left after everything was collected that nobody holds."""
        for _ in range(2):
            self._wire.send("HeapProfiler.collectGarbage")
        return int(self._metric("JSHeapUsedSize"))

    def _busy_s(self) -> float:
        return self._metric("TaskDuration")

    def _metric(self, name: str) -> float:
        told = self._wire.send("Performance.getMetrics")["metrics"]
        return float(next(each["value"] for each in told if each["name"] == name))

    def nodes(self) -> int:
        return int(self.page.evaluate("document.getElementsByTagName('*').length"))


@contextmanager
def browsing() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        shown = playwright.chromium.launch(executable_path=chromium.executable(), args=list(chromium.FLAGS))
        try:
            yield shown
        finally:
            shown.close()


@contextmanager
def fresh(browser: Browser, url: str) -> Iterator[MeasuredPage]:
    """A page of a profile that has nothing in its cache. Its policy is bypassed, so that a step can be given."""
    context = browser.new_context(viewport=DESK, bypass_csp=True)  # type: ignore[arg-type]  # a dict with both
    try:
        yield MeasuredPage(context.new_page(), url)
    finally:
        context.close()
