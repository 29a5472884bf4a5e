"""From when on the monitors speak. Whoever runs a server decides."""

import msgspec


class MonitorSettings(msgspec.Struct, frozen=True, kw_only=True):
    """`look_ms` is how often is looked. A job is over-long when it has run `long_factor` times as long as expected, and
    at least `long_min_ms`; where a flow does not say what it expects, that is learned from `learn_min` jobs or more.
    A queue grows when it has got longer at `queue_looks` looks, by `queue_min` jobs in all, and nothing was taken from
    it meanwhile. A level fills when `level_min` jobs wait in it and they get more. What is closed is kept `kept_ms`."""

    look_ms: int = 10_000
    long_factor: float = 3.0
    long_min_ms: int = 60_000
    learn_min: int = 5
    queue_looks: int = 6
    queue_min: int = 10
    level_min: int = 100
    kept_ms: int = 30 * 86_400_000
