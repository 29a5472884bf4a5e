"""Sites of a simulated grid from the command line: `NAME:key=value,...`, or a site file with changes.

A site file is the one of `mendflow admin sites add`, so a site can be tried before it gets a pilot."""

from collections.abc import Callable, Sequence
from math import ceil
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from mendflow.cli.job_estimates import bytes_of, number_of, seconds_of, spread_s_of
from mendflow.core.caching.policies import policy_by_name
from mendflow.core.model.errors import InvalidRequest
from mendflow.formats.sites import load_site
from mendflow.formats.spelling import nearest_word
from mendflow.sim.grid.scene import SiteScene

PILOTS_A_HOST: Final = 8
"""The default number of hosts."""
PILOTS_MAX: Final = 100_000
_ENDINGS = (".yaml", ".yml")


def _count(word: str, text: str) -> int:
    value = number_of(word, text, f"a whole number up to {PILOTS_MAX:,}")
    if value != int(value) or value > PILOTS_MAX:
        raise InvalidRequest(f"{word} {text!r} is not a whole number up to {PILOTS_MAX:,}")
    return int(value)


def _share(word: str, text: str) -> str:
    if text not in ("none", "host", "site"):
        raise InvalidRequest(f"{word} {text!r} is not known; a cache is shared with none, host or site")
    return text


def _chance(word: str, text: str) -> float:
    value = number_of(word, text, "a part from 0 to 1")
    if value > 1:
        raise InvalidRequest(f"{word} {text!r} is more than 1; give the part of accesses that fail, such as 0.03")
    return value


def _policy(word: str, text: str) -> str:
    try:
        policy_by_name(text)
    except InvalidRequest as invalid:
        raise InvalidRequest(f"{word}: {invalid.message}") from None
    return text


_SITE_KEYS: Final[dict[str, tuple[str, Callable[[str, str], Any]]]] = {
    "pilots": ("running", _count),
    "hosts": ("hosts", _count),
    "slots": ("slots", _count),
    "cpus": ("cpus", number_of),
    "memory": ("memory_bytes", bytes_of),
    "disk": ("disk_bytes", bytes_of),
    "min": ("min_pilots", _count),
    "max": ("max_pilots", _count),
    "idle": ("min_idle", _count),
    "life": ("life_s", seconds_of),
    "share": ("share", _share),
    "cache": ("cache_bytes", bytes_of),
    "policy": ("policy", _policy),
    "site-rate": ("site_bytes_per_s", bytes_of),
    "disk-rate": ("disk_bytes_per_s", bytes_of),
}
_ELEMENT_KEYS: Final[dict[str, tuple[str, Callable[[str, str], Any]]]] = {
    "delay": ("delay", seconds_of),
    "failure": ("failure", _chance),
    "rate": ("bytes_per_s", bytes_of),
}
_BATCH_KEYS: Final[dict[str, tuple[str, Callable[[str, str], Any]]]] = {
    "submit": ("submit_s", spread_s_of),
    "queue": ("queue_s", spread_s_of),
    "notify": ("notify_s", spread_s_of),
}
WORDS: Final = (*_SITE_KEYS, *_ELEMENT_KEYS, *_BATCH_KEYS)


def sites_of(texts: Sequence[str], pilots: int) -> tuple[SiteScene, ...]:
    """The named sites, or one default site. `pilots` that run from the start are spread over the sites that have no
    number of their own."""
    pilots = _count("--pilots", str(pilots))
    given = [_site(text) for text in texts] or [SiteScene(hosts=0, share="host")]
    silent = [at for at, site in enumerate(given) if not site.running and not site.max_pilots]
    if pilots and not silent:
        raise InvalidRequest("--pilots cannot be used: each --site already says how many it has; leave one of them out")
    if silent and not pilots:
        raise InvalidRequest("how many pilots? Give --pilots 200, or the number of each site: --site NAME:pilots=120")
    for turn, at in enumerate(silent):
        given[at] = replace(given[at], running=pilots // len(silent) + (turn < pilots % len(silent)))
    return tuple(_with_hosts(site) for site in given)


def _with_hosts(site: SiteScene) -> SiteScene:
    """Add as many hosts as its pilots need, if no number is given."""
    return site if site.hosts else replace(site, hosts=max(1, ceil(max(site.running, site.max_pilots) / PILOTS_A_HOST)))


def _site(text: str) -> SiteScene:
    what, _, settings = text.partition(":")
    if not what:
        raise InvalidRequest(
            f"--site {text!r} has no name; write --site NAME:pilots=120,delay=0.15, or --site FILE.yaml"
        )
    site = _from_file(Path(what)) if what.endswith(_ENDINGS) else SiteScene(name=what, hosts=0, share="host")
    for setting in filter(None, (part.strip() for part in settings.split(","))):
        site = _apply_setting(site, setting)
    return site


def _apply_setting(site: SiteScene, setting: str) -> SiteScene:
    key, equals, value = (part.strip() for part in setting.partition("="))
    if not equals or not value:
        raise InvalidRequest(f"--site {site.name}: {setting!r} has no value; write it as in delay=0.15")
    word = f"--site {site.name}: {key}"
    if key == "cache" and value == "none":
        return replace(site, caches=False)
    if key in _SITE_KEYS:
        field, read = _SITE_KEYS[key]
        return replace(site, **{field: read(word, value)})
    if key in _ELEMENT_KEYS:
        field, read = _ELEMENT_KEYS[key]
        return replace(site, element=replace(site.element, **{field: read(word, value)}))
    if key in _BATCH_KEYS:
        field, read = _BATCH_KEYS[key]
        return replace(site, batch=replace(site.batch, **{field: read(word, value)}))
    meant = nearest_word(key, WORDS)
    raise InvalidRequest(
        f"{word} is not known here" + (f" (did you mean {meant}?)" if meant else f"; known are {', '.join(WORDS)}")
    )


def _from_file(path: Path) -> SiteScene:
    """The pilots of a real site, from its settings. What these do not contain, such as the queue's length, comes from
    the options."""
    site = load_site(path)
    own = site.pilots
    scene = SiteScene(
        name=site.name,
        hosts=0,
        min_pilots=site.min_pilots,
        max_pilots=site.max_pilots,
        min_idle=site.min_idle,
        idle_exit_s=own.idle_exit_ms / 1000,
        life_s=site.batch.wall_ms / 1000,
        slots=own.slots,
        cpus=float(own.cpus),
        share=own.share or "host",
        policy=own.cache_policy or "lru",
    )
    sizes = {"memory_bytes": own.memory_bytes, "disk_bytes": own.disk_bytes, "cache_bytes": own.cache_bytes}
    return replace(scene, **{name: size for name, size in sizes.items() if size})
