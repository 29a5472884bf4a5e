"""A real Chromium, which shows the web app to the tests of tests/web: the one without windows, where it is there. It is
the same engine, and takes half the processor time."""

import os
import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILT = ROOT / "src" / "mendflow" / "server" / "web_files" / "index.html"
PACKAGE = "chromium-headless-shell"
PROGRAMS = (PACKAGE, "chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)


def executable() -> str:
    """The program's path; empty where there is none."""
    found = (shutil.which(program) for program in PROGRAMS)
    return os.environ.get("MENDFLOW_CHROMIUM") or next((path for path in found if path), "")


def lacking() -> str:
    """Why no page can be shown on this machine; empty if one can."""
    if not executable():
        return f"Chromium (apt-get install {PACKAGE})"
    if not BUILT.exists() and shutil.which("npm") is None:
        return "the files of the web app, and npm to build them (apt-get install npm)"
    return ""


def is_built() -> bool:
    return BUILT.exists()
