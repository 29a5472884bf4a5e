"""Baselines: a process pool, and a loop around subprocess. They promise nothing, so nothing can be quicker."""

import concurrent.futures

from bench.subject import WORKERS, CaseReference, answer, noop, shell, step


def shells(count: int) -> int:
    return sum(shell() for _ in range(count))


class Bare(CaseReference):
    def start(self) -> None:
        self.pool = self.keep(concurrent.futures.ProcessPoolExecutor(WORKERS))

    def python(self, jobs: int) -> None:
        futures = [self.pool.submit(noop, number) for number in range(jobs)]
        for future in futures:
            future.result()

    def shell(self, jobs: int) -> None:
        """Each worker loops by itself over its share."""
        shares = [jobs // WORKERS + (1 if worker < jobs % WORKERS else 0) for worker in range(WORKERS)]
        list(self.pool.map(shells, shares))

    def chain(self, jobs: int) -> None:
        value = 0
        for _ in range(jobs):
            value = self.pool.submit(step, value).result()


if __name__ == "__main__":
    answer(Bare)
