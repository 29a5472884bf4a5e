"""A Redis of our own for the peers that want one, run as it mostly is: every write in its log, the log on disk
once a second."""

import shutil
import socket
import subprocess
import time
from pathlib import Path

PATIENCE_S = 10.0


class RedisServer:
    def __init__(self, folder: Path) -> None:
        program = shutil.which("redis-server")
        if program is None:
            raise ModuleNotFoundError("redis-server is not installed", name="redis-server")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        durable = ["--appendonly", "yes", "--appendfsync", "everysec", "--save", "", "--dir", str(folder)]
        self._process = subprocess.Popen(
            [program, "--port", str(self.port), "--bind", "127.0.0.1", *durable], stdout=subprocess.DEVNULL
        )

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def __enter__(self) -> "RedisServer":
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
            except OSError:
                time.sleep(0.02)
            else:
                return self
        raise TimeoutError("redis-server did not come up")

    def __exit__(self, *exc: object) -> None:
        self._process.terminate()
        self._process.wait()
