"""What /proc tells of processes."""

import os
from pathlib import Path


def living() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and state(int(name)) not in ("", "Z")]


def environment(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []


def state(pid: int) -> str:
    """The state letter of a process, or an empty string if there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""
