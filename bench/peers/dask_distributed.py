"""Dask distributed: a scheduler and two worker processes on loopback."""

from typing import Any

from distributed import Client, LocalCluster

from bench.subject import WORKERS, CaseReference, answer, noop, shell, step


class Dask(CaseReference):
    def start(self) -> None:
        cluster = LocalCluster(
            host="127.0.0.1",
            n_workers=WORKERS,
            threads_per_worker=1,
            dashboard_address=None,
            local_directory=str(self.folder),
        )
        self.keep(cluster)
        self.client = self.keep(Client(cluster))

    def python(self, jobs: int) -> None:
        self.client.gather([self.client.submit(noop, number, pure=False) for number in range(jobs)])

    def shell(self, jobs: int) -> None:
        self.client.gather([self.client.submit(shell, pure=False) for _ in range(jobs)])

    def chain(self, jobs: int) -> None:
        value: Any = 0
        for _ in range(jobs):
            value = self.client.submit(step, value, pure=False)
        assert value.result() == jobs


if __name__ == "__main__":
    answer(Dask)
