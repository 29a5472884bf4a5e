"""Install the peers into `.venv-peers`: `python3 bench/setup_peers.py`. They are never needed but for comparing."""

import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".venv-peers"


def main() -> int:
    venv.create(FOLDER, symlinks=True, with_pip=True, clear=True)
    pip = [str(FOLDER / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "install", "--no-compile"]
    lock = ["--require-hashes", "-r", str(ROOT / "requirements" / "peers.lock")]
    return subprocess.run([*pip, *lock], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
