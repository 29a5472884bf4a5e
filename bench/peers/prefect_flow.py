"""Prefect: tasks of one flow, with its own server on loopback."""

import os

os.environ.setdefault("PREFECT_LOGGING_LEVEL", "ERROR")
os.environ.setdefault("PREFECT_SERVER_ANALYTICS_ENABLED", "false")
os.environ.setdefault("DO_NOT_TRACK", "1")

from typing import Any

from prefect import flow, task
from prefect.task_runners import ThreadPoolTaskRunner

from bench.subject import WORKERS, CaseReference, Kind, answer
from bench.subject import noop as plain_noop
from bench.subject import shell as plain_shell
from bench.subject import step as plain_step

noop = task(plain_noop)
shell = task(plain_shell)
step = task(plain_step)


@flow(task_runner=ThreadPoolTaskRunner(max_workers=WORKERS))
def many(kind: str, jobs: int) -> None:
    futures = [noop.submit(number) if kind == "python" else shell.submit() for number in range(jobs)]
    for future in futures:
        future.result()


@flow(task_runner=ThreadPoolTaskRunner(max_workers=WORKERS))
def one_after_another(jobs: int) -> None:
    value: Any = 0
    for _ in range(jobs):
        value = step.submit(value)
    assert value.result() == jobs


class Prefect(CaseReference):
    limits = {Kind.PYTHON: 300, Kind.SHELL: 200}

    def python(self, jobs: int) -> None:
        many("python", jobs)

    def shell(self, jobs: int) -> None:
        many("shell", jobs)

    def chain(self, jobs: int) -> None:
        one_after_another(jobs)


if __name__ == "__main__":
    answer(Prefect)
