"""How many requests a second the members of a project may send, where it has a quota for them.

A request counts for the project of what it is about; one about many things, or about none, for that of its sender. Each
server answers its part of the quota, so all of them together answer no more."""

import math
from typing import Final

from mendflow.core.model.errors import TooManyRequests
from mendflow.services.base.buckets import Bucket

BURST_S: Final = 2


class ProjectRequests:
    """The buckets of the projects that are bounded, each with the rate that it was made for."""

    def __init__(self) -> None:
        self._buckets: dict[str, tuple[float, Bucket]] = {}

    def take(self, project: str, per_s: float, now_s: float) -> None:
        """Count one request; raises if the project has sent too many."""
        known = self._buckets.get(project)
        if known is None or known[0] != per_s:
            known = self._buckets[project] = (per_s, Bucket(per_s, max(1.0, per_s * BURST_S), now_s))
        bucket = known[1]
        if wait_s := bucket.wait_s(1, now_s):
            raise TooManyRequests(
                f"the members of project {project} have sent more than the {per_s:g} requests a second that this server"
                f" answers by its quota; wait {wait_s:.1f} s, or ask an administrator: mendflow admin projects set"
                f" {project} --requests-per-second N",
                retry_after_s=math.ceil(wait_s),
                project=project,
            )
        bucket.take(1)
