"""Takes the pictures of the web app that the docs show: `python tools/web_pictures.py`, with a real Chromium.

A real server with a pilot gets flows, rules, failures of several causes, a task for a person, a schedule and data, all
by the commands that users have. Then a browser opens every page, light and dark, and some as on a phone. Look at the
pictures before you keep them: an ugly page is a mistake of the app.

`--to DIR` puts them elsewhere, `--only NAME...` takes some, `--png` leaves them uncompressed. Who works on a page lets
the server stay (`--stay`), and takes it again after each build (`--at`)."""

import argparse
import base64
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from playwright.sync_api import Browser, Page, Playwright, ViewportSize, expect, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tools.started_processes import all_ended  # noqa: E402  it is found there

PICTURES = ROOT / "docs" / "do" / "pictures"
DESK: ViewportSize = {"width": 1280, "height": 800}
PHONE: ViewportSize = {"width": 390, "height": 780}
QUALITY = 0.72
PATIENCE_S = 900.0
FIELDS = 600
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--force-color-profile=srgb"]

FLOWS = {
    "night-survey": """
name: night-survey
description: Measure the fields of a night, and stack them into a catalogue.
inputs:
  fields: {type: list, default: [m31, m33, m42, m51, m57, m81, m101, ngc253], description: The fields of this night}
  seconds: {type: number, default: 1, description: How long one exposure takes}
jobs:
  calibrate: {run: "echo 'flat field of 100 frames'; seq 100 > dark.txt", files: dark.txt}
  weather: {run: "echo 'seeing 0.8 arcsec, no clouds'"}
  measure:
    needs: [calibrate, weather]
    for-each: {field: "${{ inputs.fields }}"}
    run: |
      echo "field ${{ field }}: exposure of ${{ inputs.seconds }} s"
      sleep ${{ inputs.seconds }}
      printf 'star,flux\\n1,20.4\\n2,41.7\\n3,12.9\\n' > stars.csv
    files: stars.csv
  stack: {needs: measure, run: "echo 'stacked'; echo '{\\"stars\\": 1312}' > stack.json", files: stack.json}
  astrometry: {needs: stack, run: "echo 'rms 0.12 arcsec'"}
  photometry: {needs: stack, run: "echo 'zero point 25.3'"}
  catalogue: {needs: [astrometry, photometry], run: "echo 'id,mag' > catalogue.csv", files: catalogue.csv}
outputs: {catalogue: "${{ jobs.catalogue.files['catalogue.csv'] }}"}
""",
    "assemble-genome": """
name: assemble-genome
description: Assemble a genome from its reads.
on-unhandled: hold
inputs: {sample: {type: string, description: The sample}}
jobs:
  trim: {run: "echo 'trimmed 4.1 million reads of ${{ inputs.sample }}'"}
  assemble:
    needs: trim
    run: |
      echo "assembling ${{ inputs.sample }} with k = 51"
      case "${{ inputs.sample }}" in
        *7|*3) echo "ERROR: read group of ${{ inputs.sample }} is missing in the header" >&2; exit 4;;
      esac
      echo "N50 48210"
  polish: {needs: assemble, run: echo polished}
""",
    "solve": """
name: solve
description: Solve a system with a solver that needs a licence.
on-unhandled: hold
inputs: {sample: {type: string}, asked: {type: string}}
steps:
  - name: solver
    run: |
      echo "solving ${{ inputs.sample }} with 4 threads"
      if mkdir "${{ inputs.asked }}/${{ inputs.sample }}" 2>/dev/null; then
        echo "licence server: no token left" >&2; exit 9
      fi
      echo "${{ inputs.sample }} is solved"
""",
    "archive-night": """
name: archive-night
description: Bring a night to the archive.
inputs: {night: {type: string}, line: {type: string}}
jobs:
  pack: {run: "echo 'packed 412 files of ${{ inputs.night }}'"}
  upload:
    needs: pack
    run: |
      if mkdir "${{ inputs.line }}/${{ inputs.night }}" 2>/dev/null; then
        echo "archive.example.org: connection reset by peer" >&2; exit 75
      fi
      echo "412 files are there"
""",
    "release-catalogue": """
name: release-catalogue
description: A person looks at a catalogue before it goes out.
inputs: {night: {type: string}}
jobs:
  check: {run: "echo '1312 stars, 3 duplicates'"}
  approve:
    needs: check
    user-task: May the catalogue of this night go out?
    role: astronomer
    data: {night: "${{ inputs.night }}", stars: "1312", duplicates: "3"}
    fields: {approved: "yes or no: may it go out?", note: What to tell the observers}
    deadline: 8 h
  publish: {needs: approve, run: echo published}
""",
    "scan-plates": """
name: scan-plates
description: Measure plates as they are scanned.
inputs: {files: {type: list}, name: {type: string}}
jobs:
  measure: {run: "ls plates; wc -c plates/* > sizes.txt", inputs: {plates/: "${{ inputs.files }}"}, files: sizes.txt}
""",
}
RULES = """
rules: archive-night
note: What to do when the line to the archive is down.
abort:
  upload:
    - if: fault.exit_code == 75
      do: try-the-line-again
      note: The archive resets connections when it is busy; a moment later it takes them.
      except:
        - if: job.generation > 3
          do: tell-the-operator
exlets:
  try-the-line-again:
    description: Wait a moment, and submit the same again.
    steps:
      - wait: 1 s
      - re-submit:
  tell-the-operator:
    description: Somebody has to look at the line.
    steps:
      - notify: "the line to the archive is down for ${{ case.id }}"
"""
SITE = """
name: cluster
max_pilots: 3
batch: {kind: local}
pilots: {slots: 4, idle_exit: 5 min}
"""
SETS = """
data_sets:
  plates:
    gatherings:
      by-two:
        flow: scan-plates
        count: 2
        inputs: {files: "${{ files }}", name: "${{ batch.name }}"}
"""


class Shot(NamedTuple):
    """A page to take. `ready` is what it shows when it is whole."""

    name: str
    address: str
    ready: str = "main"
    phone: bool = False


class World:
    """A server with a past, and what its things are called."""

    def __init__(self, folder: Path, url: str = "", names: dict[str, str] | None = None) -> None:
        self.folder, self.url, self.names = folder, url, names or {}

    def command(self, *words: str, given: str = "") -> str:
        environment = {**os.environ, "MENDFLOW_SERVER": self.url}
        done = subprocess.run(
            [sys.executable, "-m", "mendflow", *words],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            input=given,
        )
        if done.returncode:
            raise SystemExit(f"mendflow {' '.join(words)}: {done.stdout}{done.stderr}")
        return done.stdout

    def ask(self, method: str, path: str, body: object = None) -> Any:
        request = urllib.request.Request(
            f"{self.url}/api/v1{path}",
            data=None if body is None else json.dumps(body).encode(),
            method=method,
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as response:
            text = response.read()
        return json.loads(text) if text else None

    def start(self, flow: str, **inputs: Any) -> str:
        return str(self.ask("POST", "/cases", {"flow": flow, "inputs": inputs})["id"])

    def wait(self, path: str, good: Callable[[Any], bool]) -> Any:
        until = time.monotonic() + PATIENCE_S
        while not good(said := self.ask("GET", path)):
            if time.monotonic() > until:
                raise SystemExit(f"{path} stays as it is: {said}")
            time.sleep(0.3)
        return said

    def over(self, *cases: str) -> None:
        for case in cases:
            self.wait(f"/cases/{case}", lambda said: said["status"] in ("completed", "failed", "cancelled"))

    def held(self, *cases: str) -> None:
        for case in cases:
            self.wait(f"/cases/{case}", lambda said: said["status"] == "held" or bool(said.get("held")))


@contextmanager
def served(folder: Path) -> Iterator[World]:
    world = World(folder)
    with (folder / "server.log").open("wb") as log:
        command = [sys.executable, "-m", "mendflow", "serve", "--port", "0", "--jobs", "4", "--domain", "observatory"]
        server = subprocess.Popen([*command, "--data-dir", "data"], cwd=folder, stdout=log, stderr=log)
        try:
            until = time.monotonic() + PATIENCE_S
            while not (folder / "data" / "server.json").exists():
                if server.poll() is not None or time.monotonic() > until:
                    raise SystemExit((folder / "server.log").read_text())
                time.sleep(0.2)
            world.url = json.loads((folder / "data" / "server.json").read_text())["url"]
            yield world
        finally:
            server.terminate()
            server.wait()


def furnish(world: World) -> None:
    """Give the server a past: what ended well, what failed for two causes, what was mended, and what waits."""
    for name, text in FLOWS.items():
        (world.folder / f"{name}.yaml").write_text(text)
        world.command("flows", "deploy", f"{name}.yaml")
    for name, text in {"rules.yaml": RULES, "cluster.yaml": SITE, "sets.yaml": SETS}.items():
        (world.folder / name).write_text(text)
    world.command("rules", "import", "rules.yaml")
    asked, line = world.folder / "asked", world.folder / "line"
    asked.mkdir()
    line.mkdir()
    by_hand = [world.start("solve", sample=f"beam-{number}", asked=str(asked)) for number in (1, 2)]
    survey = world.start("night-survey")
    nights = [world.start("archive-night", night=f"2026-11-{day}", line=str(line)) for day in (12, 13, 14)]
    genomes = [world.start("assemble-genome", sample=f"S{number}") for number in (11, 12, 13, 15, 17, 23, 27)]
    world.held(*by_hand)
    for case in by_hand:
        world.command("resume", case)
    world.over(*by_hand, survey, *nights)
    world.wait("/failures?flow=assemble-genome", lambda groups: sum(each["waiting"] for each in groups) >= 4)
    more = [world.start("solve", sample=f"arch-{number}", asked=str(asked)) for number in range(3)]
    world.held(*more)
    release = world.start("release-catalogue", night="2026-11-14")
    tasks = world.wait("/worklist", lambda said: bool(said))
    world.command("schedules", "add", "night-survey", "--cron", "30 18 * * *", "--timezone", "Atlantic/Canary")
    world.command(
        "schedules",
        "add",
        "archive-night",
        "--name",
        "archive",
        "--every",
        "6 h",
        "-i",
        "night=last",
        "-i",
        f"line={line}",
        "--paused",
    )
    world.command("admin", "sites", "add", "cluster.yaml")
    world.command("limits", "set", "solver-licences", "4")
    world.command("secrets", "set", "archive-password", given="not-this-one-1742")
    for name, role in (("grafana", "metrics"), ("vera", "reader"), ("cluster-pilots", "pilot")):
        world.command("admin", "tokens", "create", name, "--role", role, "--expires", "90d")
    world.command("data", "sets", "apply", "sets.yaml")
    for number in range(1, 6):
        (world.folder / f"plate-{number:03}.fits").write_bytes(os.urandom(3000 * number))
    world.command("data", "sets", "add", "plates", *[f"plate-{number:03}.fits" for number in range(1, 6)])
    groups = {
        each["flow"] if "flow" in each else each["flows"][0]: each["id"] for each in world.ask("GET", "/failures")
    }
    fields = [f"field-{number:03}" for number in range(1, FIELDS + 1)]
    running = world.start("night-survey", fields=fields, seconds=20)
    world.wait("/proposals", lambda said: bool(said))
    done = FIELDS // 10  # so that something of it is done, and much is not
    world.wait(f"/cases/{running}", lambda said: sum(each["done"] for each in said["counts"]) > done)
    world.names = {
        "survey": survey,
        "running": running,
        "mended": nights[0],
        "broken": genomes[2],
        "release": release,
        "task": tasks[0]["id"].rpartition("/")[2],
        "group": groups["assemble-genome"],
    }


SHOTS = [
    Shot("home", "/"),
    Shot("cases", "/cases", phone=True),
    Shot("case", "/cases/{running}", ".react-flow__node", phone=True),
    Shot("case-timeline", "/cases/{survey}?view=timeline"),
    Shot("case-items", "/cases/{running}?view=items"),
    Shot("case-history", "/cases/{mended}?view=history"),
    Shot("case-failed", "/cases/{broken}", ".react-flow__node"),
    Shot("jobs", "/jobs"),
    Shot("failures", "/failures"),
    Shot("failure", "/failures/{group}"),
    Shot("teach", "/failures/{group}/teach"),
    Shot("rules", "/rules"),
    Shot("rule-set", "/rules/archive-night?rule=1"),
    Shot("proposals", "/proposals"),
    Shot("worklist", "/worklist", phone=True),
    Shot("user-task", "/worklist/{release}/{task}"),
    Shot("run", "/run"),
    Shot("new-run", "/run/night-survey"),
    Shot("flows", "/flows"),
    Shot("flow", "/flows/night-survey"),
    Shot("schedules", "/schedules?name=night-survey"),
    Shot("data", "/data?view=sets&name=plates"),
    Shot("pilots", "/pilots"),
    Shot("sites", "/sites?site=cluster"),
    Shot("domains", "/domains"),
    Shot("administration", "/administration"),
    Shot("audit", "/administration?view=audit"),
    Shot("sign-in", "/sign-in"),
    Shot("help", "/help"),
]


def picture(page: Page, world: World, shot: Shot) -> bytes:
    page.goto(world.url + shot.address.format(**world.names))
    page.locator(shot.ready).first.wait_for(timeout=60_000)
    page.wait_for_timeout(1500)  # what comes in after the page: counts, layouts, fonts
    expect(page.locator(".loading")).to_have_count(0, timeout=60_000)
    return page.screenshot()


def as_webp(page: Page, png: bytes) -> bytes:
    """The same picture, as small as the browser can make it."""
    address = "data:image/png;base64," + base64.b64encode(png).decode()
    made = page.evaluate(
        """async ([address, quality]) => {
            const image = new Image();
            image.src = address;
            await image.decode();
            const canvas = document.createElement("canvas");
            canvas.width = image.naturalWidth;
            canvas.height = image.naturalHeight;
            canvas.getContext("2d").drawImage(image, 0, 0);
            return canvas.toDataURL("image/webp", quality);
        }""",
        [address, QUALITY],
    )
    return base64.b64decode(made.partition(",")[2])


def take(browser: Browser, world: World, folder: Path, *, only: set[str], png: bool) -> int:
    """Every picture, in both looks; the answer is how many bytes they have."""
    total = 0
    maker = browser.new_page()
    for look in ("light", "dark"):
        for kind, size in (("", DESK), ("-phone", PHONE)):
            context = browser.new_context(viewport=size, color_scheme=look, has_touch=bool(kind), locale="en-GB")
            page = context.new_page()
            for shot in SHOTS:
                if (only and shot.name not in only) or (kind and not shot.phone):
                    continue
                taken = picture(page, world, shot)
                content = taken if png else as_webp(maker, taken)
                (folder / f"{shot.name}{kind}-{look}.{'png' if png else 'webp'}").write_bytes(content)
                total += len(content)
            context.close()
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--to", type=Path, default=PICTURES)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--png", action="store_true")
    parser.add_argument("--chromium", default=os.environ.get("MENDFLOW_CHROMIUM", "/usr/bin/chromium"))
    parser.add_argument("--stay", action="store_true", help="print what --at takes, and stay until Ctrl-C")
    parser.add_argument("--at", default="", metavar="WORLD", help="take the pictures of a server that stays")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as made:
        if given.at:
            world = World(Path(made), **json.loads(given.at))
            shoot(playwright, world, given)
            return
        with all_ended(), served(Path(made)) as world:
            furnish(world)
            if given.stay:
                print(json.dumps({"url": world.url, "names": world.names}), flush=True)
                time.sleep(86_400)
            shoot(playwright, world, given)


def shoot(playwright: Playwright, world: World, given: argparse.Namespace) -> None:
    given.to.mkdir(parents=True, exist_ok=True)
    browser = playwright.chromium.launch(executable_path=given.chromium, args=FLAGS)
    total = take(browser, world, given.to, only=set(given.only), png=given.png)
    browser.close()
    print(f"{given.to}: {total / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
