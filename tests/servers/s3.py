"""A real S3 server: SeaweedFS, which checks signatures, in one process with a folder and ports of its own."""

import atexit
import functools
import secrets
import shutil
import sys
import tempfile
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

import fsspec
import msgspec

from mendflow.core.model.data import StorageElement
from tests.patience import PATIENCE_S
from tests.servers.processes import dying_with_us, end, free_port, launch

KEY, SECRET = "mendflow-test", "not-to-be-seen-anywhere"
BUCKET = "tests"
PORTS = range(12_000, 22_000)
SECOND_PORT = 10_000
"""Each part also takes the port that is so much higher. Both are below those that the kernel gives to anybody."""

OPTIONS = {"key": "env:TEST_S3_KEY", "secret": "env:TEST_S3_SECRET", "client_kwargs.region_name": "us-east-1"}
ENVIRONMENT = {"TEST_S3_KEY": KEY, "TEST_S3_SECRET": SECRET}


@dataclass(frozen=True)
class S3:
    url: str

    def element(self, name: str = "objects") -> StorageElement:
        """An element that nobody else has. There is one bucket: each more would take volumes of its own."""
        url = f"s3://{BUCKET}/{secrets.token_hex(6)}/top"
        return StorageElement(name=name, url=url, options={**OPTIONS, "endpoint_url": self.url})

    def raw(self) -> fsspec.AbstractFileSystem:
        """The server as any other program sees it."""
        return fsspec.filesystem(
            "s3", key=KEY, secret=SECRET, endpoint_url=self.url, client_kwargs={"region_name": "us-east-1"}
        )


@functools.cache
def server(volumes: int = 40) -> S3:
    """Starts when it is first wanted and ends with the tests. A volume has 64 MB, and what was removed goes on to take
    room in it for a while: a server that has none left refuses with an InternalError."""
    folder = Path(tempfile.mkdtemp(prefix="mendflow-s3-"))
    identity = {"name": "tests", "credentials": [{"accessKey": KEY, "secretKey": SECRET}]}
    config = {"identities": [{**identity, "actions": ["Admin", "Read", "Write", "List", "Tagging"]}]}
    (folder / "s3.json").write_bytes(msgspec.json.encode(config))
    ports = {name: free_port(PORTS, and_above=SECOND_PORT) for name in ("master", "volume", "filer", "s3")}
    program = Path(sys.executable).with_name("weed")
    command = [
        *(*dying_with_us(), str(program), "server", f"-dir={folder}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-s3"),
        *(f"-{name}.port={port}" for name, port in ports.items()),
        *(
            f"-s3.config={folder}/s3.json",
            "-master.volumeSizeLimitMB=64",
            f"-volume.max={volumes}",
            "-master.telemetry=false",
        ),
        f"-filer.localSocket={folder}/filer.sock",
        *("-s3.port.iceberg=0", "-s3.port.lance=0"),  # these would be the same ports for everybody
    ]
    log = folder / "log"
    process = launch(command, log=log, cwd=folder)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(end, process, kill=True)
    found = S3(f"http://127.0.0.1:{ports['s3']}")
    _wait(found, log)
    return found


def _wait(server: S3, log: Path) -> None:
    """Until files can be written, which is later than that it answers."""
    give_up_at = time.monotonic() + PATIENCE_S
    while True:
        try:
            urllib.request.urlopen(server.url, timeout=2).close()
        except urllib.error.HTTPError:
            break
        except OSError:
            assert time.monotonic() < give_up_at, log.read_text()[-3000:]
            time.sleep(0.1)
    while True:
        try:
            raw = server.raw()
            raw.mkdir(BUCKET)
            raw.pipe_file(f"{BUCKET}/first", b"a")
            return
        except OSError:
            assert time.monotonic() < give_up_at, log.read_text()[-3000:]
            time.sleep(0.2)
