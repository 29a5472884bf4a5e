"""What the jobs of the chaos do: say when they start, that they are alive, and when they end.

Each says so in a line of a file that all share, by the one clock that all processes of a machine have in common. Run by
a pilot's warm worker or as a program; it imports nothing of the project, and little else, because it starts often."""

import os
import sys
import time

EVERY_S = 0.04


def tick(log: str, seconds: float, release: str = "") -> dict[str, int]:
    """Be alive for so long, or until there is the file `release`, and tell under which fence."""
    words = [os.environ[name] for name in ("MENDFLOW_JOB", "MENDFLOW_FENCE", "MENDFLOW_PILOT")]
    file = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def say(what: str) -> None:
        # A line this short is written whole by one append.
        os.write(file, f"{' '.join(words)} {what} {time.monotonic_ns() // 1000}\n".encode())

    try:
        say("start")
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0 and not (release and os.path.exists(release)):
            time.sleep(min(EVERY_S, left))
            say("alive")
        say("end")
    finally:
        os.close(file)
    return {"attempt": int(words[1])}


if __name__ == "__main__":
    told = tick(sys.argv[1], float(sys.argv[2]), *sys.argv[3:])
    with open(os.environ["MENDFLOW_OUTPUT"], "a", encoding="utf-8") as outputs:
        outputs.write(f"attempt={told['attempt']}\n")
