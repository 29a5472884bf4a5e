"""The thresholds of the monitor. The server's owner sets them."""

import msgspec


class MonitorSettings(msgspec.Struct, frozen=True, kw_only=True):
    """`look_ms` is the interval between looks. A job is over-long when it has run `long_factor` times as long as
    expected, and at least `long_min_ms`; where a flow does not say what it expects, that is learned from `learn_min`
    jobs or more. A queue grows when it has become longer at `queue_looks` looks, by `queue_min` jobs in all, and no job
    was taken from it meanwhile. A level fills up when `level_min` jobs wait in it and their number grows. That no
    pilot could ever take a job is told after `unable_ms`, for one may be about to come. Closed alerts are kept for
    `kept_ms`."""

    look_ms: int = 10_000
    long_factor: float = 3.0
    long_min_ms: int = 60_000
    learn_min: int = 5
    queue_looks: int = 6
    queue_min: int = 10
    level_min: int = 100
    unable_ms: int = 60_000
    kept_ms: int = 30 * 86_400_000
