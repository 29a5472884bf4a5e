"""Install the peers into `.venv-peers`: `python3 bench/setup_peers.py`. They are never needed but for comparing.

The lock names everything that they depend on, so pip looks for nothing else: an older one refuses, in a lock with
hashes, what a package asks for with an extra."""

import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".venv-peers"


def main() -> int:
    venv.create(FOLDER, symlinks=True, with_pip=True, clear=True)
    pip = [str(FOLDER / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "install"]
    pip += ["--no-compile", "--no-deps"]
    lock = ["--require-hashes", "-r", str(ROOT / "requirements" / "peers.lock")]
    return subprocess.run([*pip, *lock], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
