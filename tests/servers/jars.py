"""Jars of servers that tests start, which Maven fetches once into a folder outside the project."""

import fcntl
import functools
import hashlib
import os
import shutil
import subprocess
from pathlib import Path


@functools.cache
def fetched_jars(pom: Path) -> Path:
    """The folder with the jars that a pom names. Whoever comes first fetches them; others wait for that."""
    name = pom.name.partition(".")[0]
    cache = Path(os.environ.get("MENDFLOW_TEST_CACHE", "~/.cache/mendflow")).expanduser() / name
    folder = cache / hashlib.sha256(pom.read_bytes()).hexdigest()[:16]
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            fetched = cache / "fetching"
            shutil.rmtree(fetched, ignore_errors=True)
            goal = ["dependency:copy-dependencies", f"-DoutputDirectory={fetched}"]
            subprocess.run(["mvn", "-q", "-B", "-f", str(pom), *goal], check=True, cwd=cache)
            fetched.rename(folder)
    return folder
