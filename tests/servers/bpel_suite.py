"""Where the BPEL conformance suite is. The check looks for it before it has an environment with mendflow in it."""

from typing import Final

from tools.environment import ROOT

SUITE: Final = ROOT.parent / "shared" / "conformance" / "bpel"


def lacking() -> str:
    """What is missing for the suite to be played here; empty if nothing is."""
    return "" if (SUITE / "replay.py").is_file() else f"the conformance suite at {SUITE}"
