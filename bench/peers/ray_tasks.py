"""Ray: remote functions on a local node."""

import os
from typing import Any

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"

import ray

from bench.subject import WORKERS, CaseReference, answer
from bench.subject import noop as plain_noop
from bench.subject import shell as plain_shell
from bench.subject import step as plain_step

noop = ray.remote(plain_noop)
step = ray.remote(plain_step)
shell = ray.remote(plain_shell)


class Ray(CaseReference):
    def start(self) -> None:
        ray.init(num_cpus=WORKERS, include_dashboard=False, _node_ip_address="127.0.0.1", log_to_driver=False)
        self.at_end(ray.shutdown)

    def python(self, jobs: int) -> None:
        ray.get([noop.remote(number) for number in range(jobs)])

    def shell(self, jobs: int) -> None:
        ray.get([shell.remote() for _ in range(jobs)])

    def chain(self, jobs: int) -> None:
        value: Any = 0
        for _ in range(jobs):
            value = step.remote(value)
        assert ray.get(value) == jobs


if __name__ == "__main__":
    answer(Ray)
