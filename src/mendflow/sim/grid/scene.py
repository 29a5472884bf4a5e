"""The description of a grid as plain data: sites, hosts, storage elements and batch systems.

Times are in simulated seconds, sizes in bytes. A pair is a mean and a standard deviation; drawn values are never below
zero."""

from collections import Counter
from collections.abc import Mapping
from typing import Literal

import msgspec

from mendflow.core.caching.policies import policy_by_name
from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.projects import ProjectSettings

Spread = tuple[float, float]
"""A mean and a standard deviation."""

MB = 1_000_000
GB = 1_000_000_000


class ElementScene(msgspec.Struct, frozen=True, kw_only=True):
    """A storage element. A transfer takes bytes / `bytes_per_s`, plus for each chunk a delay of `delay` seconds with a
    standard deviation of `spread` times that. With probability `failure` it fails somewhere on the way."""

    delay: float = 0.01
    failure: float = 0.0
    bytes_per_s: float = 50 * MB
    chunk_bytes: int = MB
    spread: float = 0.25


class BatchScene(msgspec.Struct, frozen=True, kw_only=True):
    """A batch system: the times for submitting, for waiting in the queue, and until an end is noticed."""

    submit_s: Spread = (0.0, 0.0)
    queue_s: Spread = (0.0, 0.0)
    notify_s: Spread = (0.0, 0.0)


class SiteScene(msgspec.Struct, frozen=True, kw_only=True):
    """A site. `running` pilots run from the start, spread over its hosts; others are submitted to the batch system, as
    the pilot monitor decides between `min_pilots` and `max_pilots`. A host has room for `pilots_a_host`; 0: unlimited.
    `life_s` is a pilot's maximum lifetime, 0: unlimited."""

    name: str = "site"
    hosts: int = 10
    pilots_a_host: int = 0
    running: int = 0
    arrive_s: float = 0.0  # running pilots start one by one over this time; 0: all at once
    min_pilots: int = 0
    max_pilots: int = 0
    min_idle: int = 0
    idle_exit_s: float = 0.0
    life_s: float = 0.0
    slots: int = 1
    cpus: float = 0.0  # per pilot; 0: one per slot
    memory_bytes: int = 16 * GB
    disk_bytes: int = 100 * GB
    element: ElementScene = ElementScene()
    batch: BatchScene = BatchScene()
    share: Literal["none", "host", "site"] = "none"
    caches: bool = True
    cache_bytes: int = 10 * GB
    threshold_bytes: int = GB
    policy: str = "lru"
    overhead_s: float = 0.0  # a pilot's overhead per attempt beside staging and computing
    disk_bytes_per_s: float = 500 * MB  # from the pilot's own cache, or another's on its host
    site_bytes_per_s: float = 100 * MB  # from another host's cache


class GridScene(msgspec.Struct, frozen=True, kw_only=True):
    """A grid, and how jobs get there: through pilots, or `direct`, one by one into the batch system of the first site.
    `retries` and `retry_wait_ms` are the defaults of jobs. `exchange_s` is the duration of an exchange between a pilot
    and the server."""

    seed: int | str = 0
    sites: tuple[SiteScene, ...] = (SiteScene(),)
    submission: Literal["pilots", "direct"] = "pilots"
    wait_for_data: bool = True
    lease_ms: int = 3_600_000
    losses_max: int = 10
    retries: int = 0
    retry_wait_ms: int = 0
    exchange_s: float = 0.05
    hold_s: float = 0.0  # how long an idle pilot leaves a request with the server; 0: until its next heartbeat
    monitor_s: float = 10.0  # how often the pilot monitor checks a site
    limits: Mapping[str, int] = {}  # counts of named limits; others do not bound anything
    projects: Mapping[str, ProjectSettings] = {}  # weights and quotas
    half_life_s: float = 0.0  # of what projects have used; 0: as a server has it
    files: Mapping[str, int] = {}  # sizes of the flow's input files, by path, by name, or as lfn:NAME
    # busy pilots keep a request open, so that orders reach them at once and not with a heartbeat
    attentive: bool = False
    recovery: bool = False  # whether rules and exlets repair failures; without it jobs have only their retries
    look_s: float = 5.0  # the minimum sleep of all services
    quiet_s: float = 86_400.0  # after so long without an event the simulation counts as stuck
    start_gap_s: float = 0.0  # attempts begin one after the other, so far apart, wherever they run
    steps_max: int = 0  # limit of callbacks; 0: none


def check_scene(scene: GridScene) -> None:
    """Refuse an inconsistent grid."""
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
