"""huey on Redis: a consumer with two worker processes."""

import os
import subprocess
import sys

from huey import RedisHuey

from bench.peers.redis_server import RedisServer
from bench.subject import WORKERS, CaseReference, answer
from bench.subject import noop as plain_noop
from bench.subject import shell as plain_shell
from bench.subject import step as plain_step

URL = "BENCH_HUEY_URL"
huey = RedisHuey("bench", url=os.environ.get(URL, "redis://127.0.0.1:1/0"))
noop = huey.task()(plain_noop)
shell = huey.task()(plain_shell)
step = huey.task()(plain_step)


class Huey(CaseReference):
    def start(self) -> None:
        server = self.keep(RedisServer(self.folder))
        huey.storage = RedisHuey("bench", url=server.url).storage
        workers = ["-k", "process", "-w", str(WORKERS), "-q", "-n"]
        consumer = subprocess.Popen(
            [sys.executable, "-m", "huey.bin.huey_consumer", "bench.peers.huey_redis.huey", *workers],
            env={**os.environ, URL: server.url},
        )
        self.at_end(consumer.wait)
        self.at_end(consumer.terminate)

    def python(self, jobs: int) -> None:
        for result in [noop(number) for number in range(jobs)]:
            result.get(blocking=True, backoff=1, max_delay=0.01)

    def shell(self, jobs: int) -> None:
        for result in [shell() for _ in range(jobs)]:
            result.get(blocking=True, backoff=1, max_delay=0.01)

    def chain(self, jobs: int) -> None:
        pipeline = step.s(0)
        for _ in range(jobs - 1):
            pipeline = pipeline.then(step)
        *_, last = huey.enqueue(pipeline)
        assert last.get(blocking=True, backoff=1, max_delay=0.002) == jobs


if __name__ == "__main__":
    answer(Huey)
