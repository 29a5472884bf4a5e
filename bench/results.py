"""Who is measured, and what was measured of them."""

from typing import NamedTuple

from bench.subject import Kind


class SubjectEntry(NamedTuple):
    """`durable` says what a crash of everything loses, in the peer's usual setting."""

    name: str
    module: str
    durable: str


ENTRIES = (
    SubjectEntry("mendflow", "bench.ours", "nothing"),
    SubjectEntry("bare pool and loop", "bench.peers.bare", "all"),
    SubjectEntry("Parsl HTEX", "bench.peers.parsl_htex", "all"),
    SubjectEntry("Ray", "bench.peers.ray_tasks", "all"),
    SubjectEntry("Dask distributed", "bench.peers.dask_distributed", "all"),
    SubjectEntry("huey on Redis", "bench.peers.huey_redis", "a second"),
    SubjectEntry("Celery on Redis", "bench.peers.celery_redis", "a second"),
    SubjectEntry("DBOS on SQLite", "bench.peers.dbos_sqlite", "nothing"),
    SubjectEntry("Prefect", "bench.peers.prefect_flow", "tasks in flight"),
    SubjectEntry("Snakemake", "bench.peers.snakemake_rules", "jobs in flight"),
    SubjectEntry("HyperQueue", "bench.peers.hyperqueue_cluster", "all"),
)


class Timing(NamedTuple):
    jobs: int
    seconds: float

    @property
    def rate(self) -> float:
        return self.jobs / self.seconds

    @property
    def hop_ms(self) -> float:
        return self.seconds / self.jobs * 1000


Measured = dict[str, dict[Kind, list[Timing]]]


class BenchReport(NamedTuple):
    measured: Measured
    left_out: dict[str, str]
    big: dict[str, float]
    match: dict[str, object]
    machine: str
    rounds: int
    rules: dict[str, object] = {}
    proxy: dict[str, float] = {}
