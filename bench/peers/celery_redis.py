"""Celery on Redis: one worker with two prefork processes."""

import os
import subprocess
import sys

from celery import Celery, chain

from bench.peers.redis_server import RedisServer
from bench.subject import WORKERS, CaseReference, answer
from bench.subject import noop as plain_noop
from bench.subject import shell as plain_shell
from bench.subject import step as plain_step

URL = "BENCH_CELERY_URL"
app = Celery("bench.peers.celery_redis", broker=os.environ.get(URL), backend=os.environ.get(URL))
app.conf.update(worker_prefetch_multiplier=4, task_acks_late=True, broker_connection_retry_on_startup=True)
noop = app.task(plain_noop, name="noop")
shell = app.task(plain_shell, name="shell")
step = app.task(plain_step, name="step")


class CeleryRedis(CaseReference):
    def start(self) -> None:
        server = self.keep(RedisServer(self.folder))
        app.conf.update(broker_url=server.url, result_backend=server.url)
        quiet = ["-l", "ERROR", "--without-gossip", "--without-mingle", "--without-heartbeat"]
        worker = subprocess.Popen(
            [sys.executable, "-m", "celery", "-A", "bench.peers.celery_redis", "worker", "-c", str(WORKERS), *quiet],
            env={**os.environ, URL: server.url, "C_FORCE_ROOT": "1"},
            stdout=subprocess.DEVNULL,
        )
        self.at_end(worker.wait)
        self.at_end(worker.terminate)
        noop.delay(0).get(timeout=60)

    def python(self, jobs: int) -> None:
        for result in [noop.delay(number) for number in range(jobs)]:
            result.get()

    def shell(self, jobs: int) -> None:
        for result in [shell.delay() for _ in range(jobs)]:
            result.get()

    def chain(self, jobs: int) -> None:
        signatures = [step.s(0), *(step.s() for _ in range(jobs - 1))]
        assert chain(*signatures).delay().get() == jobs


if __name__ == "__main__":
    answer(CeleryRedis)
