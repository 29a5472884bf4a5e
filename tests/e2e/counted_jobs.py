"""Jobs of several servers that are counted: each writes a line when it begins and one when it ends, so that the lines
say how many ran at once, and whether one ran twice."""

from collections.abc import Sequence
from itertools import accumulate

from mendflow.client import SyncClient
from tests.e2e.site import Site

NAMES = ("east", "west", "north")


def counted_flow(name: str, jobs: int, key: str = "") -> str:
    """A flow with so many jobs, which have this key as well."""
    more = f"\n    {key}" if key else ""
    return f"""
name: {name}
inputs:
  folder: {{type: string}}
jobs:
  work:
    for-each: {{i: {{from: 1, to: {jobs}}}}}{more}
    run: |
      echo + $MENDFLOW_JOB >> ${{{{ inputs.folder }}}}/lines
      sleep 0.7
      echo - $MENDFLOW_JOB >> ${{{{ inputs.folder }}}}/lines
"""


def serve_with_pilots(site: Site, names: Sequence[str] = NAMES) -> dict[str, SyncClient]:
    """A server of each name and a pilot of each, which know each other."""
    clients = {name: site.serve(name) for name in names}
    west = clients["west"]
    site.until(lambda: len(west.servers()) == len(names), "the servers to see each other")
    for name in names:
        site.pilot(f"p-{name}", name)
    return clients


def begins(line: str) -> bool:
    return line.startswith("+")


def running_after(lines: Sequence[str]) -> list[int]:
    """How many jobs ran after each line."""
    return list(accumulate(1 if begins(line) else -1 for line in lines))


def check_counts(site: Site, *, at_once_max: int, jobs: int) -> None:
    """All jobs have run, none twice, and no more at once than were allowed."""
    running = running_after(site.lines())
    assert 1 < max(running) <= at_once_max, "more jobs ran at once than are allowed"
    assert running[-1] == 0
    assert len(set(site.lines())) == len(site.lines()) == 2 * jobs, "no job whose server was killed ran again"
