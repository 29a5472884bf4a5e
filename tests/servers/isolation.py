"""What keeps jobs apart on a machine: accounts, and the sandbox of the package bubblewrap."""

import os
import shutil

PACKAGES = "bubblewrap util-linux"


def lacking() -> str:
    """Why jobs cannot be kept apart on this machine; empty if they can."""
    missing = [program for program in ("bwrap", "setpriv") if shutil.which(program) is None]
    if missing:
        return f"{', '.join(missing)} (apt-get install {PACKAGES})"
    return "" if os.geteuid() == 0 else "the right to start jobs under other accounts: run as root"
