"""What a grid is made of: sites, their hosts, storage elements and batch systems, as plain data.

Times are in seconds of the imagined world, sizes in bytes. A pair is a mean and a standard deviation; what is drawn
from it is never below zero."""

from collections import Counter
from collections.abc import Mapping
from typing import Literal

import msgspec

from mendflow.core.caching.policies import policy_by_name
from mendflow.core.model.errors import InvalidRequest

Spread = tuple[float, float]
"""A mean and a standard deviation."""

MB = 1_000_000
GB = 1_000_000_000


class ElementScene(msgspec.Struct, frozen=True, kw_only=True):
    """A storage element. A file takes its bytes by `bytes_per_s`, and for each chunk a delay of `delay` seconds, drawn
    with a standard deviation of `spread` times that. With probability `failure` reading or writing it fails, somewhere
    on the way."""

    delay: float = 0.01
    failure: float = 0.0
    bytes_per_s: float = 50 * MB
    chunk_bytes: int = MB
    spread: float = 0.25


class BatchScene(msgspec.Struct, frozen=True, kw_only=True):
    """A batch system: what it takes until something is submitted, until it runs, and until its end is noticed."""

    submit_s: Spread = (0.0, 0.0)
    queue_s: Spread = (0.0, 0.0)
    notify_s: Spread = (0.0, 0.0)


class SiteScene(msgspec.Struct, frozen=True, kw_only=True):
    """A site. `running` pilots run from the beginning, spread over its hosts; others come by the batch system, as the
    pilot monitor finds them wanted between `min_pilots` and `max_pilots`. A host has room for `pilots_a_host`; 0: for
    any number. `life_s` is how long a pilot may live, 0 without end."""

    name: str = "site"
    hosts: int = 10
    pilots_a_host: int = 0
    running: int = 0
    arrive_s: float = 0.0  # the running ones have come one by one in this time; 0: all at the beginning
    min_pilots: int = 0
    max_pilots: int = 0
    min_idle: int = 0
    idle_exit_s: float = 0.0
    life_s: float = 0.0
    slots: int = 1
    cpus: float = 0.0  # of a pilot; 0: one a slot
    memory_bytes: int = 16 * GB
    disk_bytes: int = 100 * GB
    element: ElementScene = ElementScene()
    batch: BatchScene = BatchScene()
    share: Literal["none", "host", "site"] = "none"
    caches: bool = True
    cache_bytes: int = 10 * GB
    threshold_bytes: int = GB
    policy: str = "lru"
    overhead_s: float = 0.0  # what a pilot takes for an attempt beside staging and computing
    disk_bytes_per_s: float = 500 * MB  # from the pilot's own cache, or another's on its host
    site_bytes_per_s: float = 100 * MB  # from another host's cache


class GridScene(msgspec.Struct, frozen=True, kw_only=True):
    """A grid, and how jobs come to it: through pilots, or `direct`, each by itself into the batch system of the first
    site. `retries` and `retry_wait_ms` are what a job gets that says nothing itself. `exchange_s` is what an exchange
    between a pilot and the server takes."""

    seed: int | str = 0
    sites: tuple[SiteScene, ...] = (SiteScene(),)
    submission: Literal["pilots", "direct"] = "pilots"
    wait_for_data: bool = True
    lease_ms: int = 3_600_000
    losses_max: int = 10
    retries: int = 0
    retry_wait_ms: int = 0
    exchange_s: float = 0.05
    hold_s: float = 0.0  # how long an idle pilot leaves a request with the server; 0: until its next beat
    monitor_s: float = 10.0  # how often the pilot monitor looks at a site
    files: Mapping[str, int] = {}  # the bytes of files that flows are given, by path, by name, or as lfn:NAME
    attentive: bool = False  # busy pilots keep an exchange open, so that orders reach them at once and not with a beat
    recovery: bool = False  # whether rules and exlets mend what fails; without it jobs have their retries, and no more
    look_s: float = 5.0  # no service looks at anything more often than this
    quiet_s: float = 86_400.0  # after so long in which nothing happened the world is taken to be stuck
    steps_max: int = 0  # of the loop; 0: as many as it takes


def check_scene(scene: GridScene) -> None:
    """Refuse a grid that cannot be."""
    names = [site.name for site in scene.sites]
    if not names or not all(names):
        raise InvalidRequest("a grid has at least one site, and each has a name of its own")
    doubled = [name for name, count in Counter(names).items() if count > 1]
    if doubled:
        raise InvalidRequest(f"several sites are called {', '.join(doubled)}; give each a name of its own")
    for site in scene.sites:
        policy_by_name(site.policy)
        room = site.hosts * site.pilots_a_host
        if site.hosts < 1 or (room and max(site.running, site.max_pilots) > room):
            raise InvalidRequest(
                f"site {site.name}: {site.hosts} hosts have no room for its pilots; give it more hosts"
            )
        if site.slots < 1:
            raise InvalidRequest(f"site {site.name}: a pilot has at least one slot")
        if min(site.element.bytes_per_s, site.disk_bytes_per_s, site.site_bytes_per_s) <= 0:
            raise InvalidRequest(
                f"site {site.name}: at 0 bytes a second nothing ever comes; give its rate, disk-rate and site-rate more"
            )
    if scene.submission == "pilots" and not any(site.running or site.max_pilots for site in scene.sites):
        raise InvalidRequest("no site has pilots; say how many are running, or how many may be submitted")
