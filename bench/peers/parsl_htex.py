"""Parsl with its HighThroughputExecutor: an interchange and a worker pool over loopback."""

import os
import sys
from typing import Any

import parsl
from parsl.config import Config
from parsl.executors import HighThroughputExecutor
from parsl.providers import LocalProvider

from bench.subject import WORKERS, CaseReference, answer


@parsl.python_app
def noop(value: int) -> int:
    return value


@parsl.python_app
def step(value: int) -> int:
    return value + 1


@parsl.bash_app
def shell() -> str:
    return "true"


class ParslHtex(CaseReference):
    def start(self) -> None:
        # Parsl starts its interchange and workers by name.
        os.environ["PATH"] = f"{os.path.dirname(sys.executable)}{os.pathsep}{os.environ['PATH']}"
        executor = HighThroughputExecutor(
            label="htex",
            address="127.0.0.1",
            cores_per_worker=1,
            max_workers_per_node=WORKERS,
            provider=LocalProvider(init_blocks=1, min_blocks=1, max_blocks=1),
        )
        parsl.load(Config(executors=[executor], strategy="none", run_dir=str(self.folder / "runinfo")))
        self.at_end(parsl.dfk().cleanup)

    def python(self, jobs: int) -> None:
        futures = [noop(number) for number in range(jobs)]
        for future in futures:
            future.result()

    def shell(self, jobs: int) -> None:
        futures = [shell() for _ in range(jobs)]
        for future in futures:
            future.result()

    def chain(self, jobs: int) -> None:
        value: Any = 0
        for _ in range(jobs):
            value = step(value)
        assert value.result() == jobs


if __name__ == "__main__":
    answer(ParslHtex)
