"""Who is measured, and what was measured of them."""

from typing import NamedTuple

from bench.subject import Kind


class Entry(NamedTuple):
    """`durable` says what a crash of everything loses, in the peer's usual setting."""

    name: str
    module: str
    durable: str


ENTRIES = (
    Entry("mendflow", "bench.ours", "nothing"),
    Entry("bare pool and loop", "bench.peers.bare", "all"),
    Entry("Parsl HTEX", "bench.peers.parsl_htex", "all"),
    Entry("Ray", "bench.peers.ray_tasks", "all"),
    Entry("Dask distributed", "bench.peers.dask_distributed", "all"),
    Entry("huey on Redis", "bench.peers.huey_redis", "a second"),
    Entry("Celery on Redis", "bench.peers.celery_redis", "a second"),
    Entry("DBOS on SQLite", "bench.peers.dbos_sqlite", "nothing"),
    Entry("Prefect", "bench.peers.prefect_flow", "tasks in flight"),
    Entry("Snakemake", "bench.peers.snakemake_rules", "jobs in flight"),
    Entry("HyperQueue", "bench.peers.hyperqueue_cluster", "all"),
)


class Took(NamedTuple):
    jobs: int
    seconds: float

    @property
    def rate(self) -> float:
        return self.jobs / self.seconds

    @property
    def hop_ms(self) -> float:
        return self.seconds / self.jobs * 1000


Measured = dict[str, dict[Kind, list[Took]]]


class Report(NamedTuple):
    measured: Measured
    left_out: dict[str, str]
    big: dict[str, float]
    match: dict[str, object]
    machine: str
    rounds: int
    rules: dict[str, object] = {}
    proxy: dict[str, float] = {}
