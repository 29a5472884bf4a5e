"""The server of the measurement: on a store that was filled before, with pilots that only say that they are there."""

import asyncio
import os
import threading
import time
from pathlib import Path

from bench.ours import Mendflow
from bench.web.fill import HOSTS, SITES, Amounts, Templates, fill
from mendflow.client import Client
from mendflow.core.model.ids import PilotId
from mendflow.core.model.sync import Capacity, SyncRequest

BEAT_S = 10.0
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class FilledServer(Mendflow):
    """A server and one real pilot with two slots, beside all those of the store."""

    def __init__(self, amounts: Amounts) -> None:
        super().__init__()
        self.amounts = amounts
        self.filled_s = self.started_s = 0.0

    def start(self) -> None:
        with Templates() as made:
            templates = made.made()
        data = self.folder / "data"
        data.mkdir(mode=0o700)
        self.filled_s = asyncio.run(fill(data, self.amounts, templates))
        began = time.perf_counter()
        super().start()
        self.started_s = time.perf_counter() - began
        self.url = self.client.url
        self.keep(IdlePilots(self.url, self.amounts.pilots))

    def processor_s(self) -> float:
        """What the server has used so far."""
        fields = Path(f"/proc/{self.server.pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:13])) / _TICKS_PER_S

    def memory_bytes(self) -> int:
        status = Path(f"/proc/{self.server.pid}/status").read_text()
        return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1]) * 1024


class IdlePilots:
    """Pilots that are known to the server and want no job: each says so now and then."""

    def __init__(self, url: str, count: int) -> None:
        self._url, self._count = url, count
        self._over = threading.Event()
        self._first = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._beat()), daemon=True)

    def __enter__(self) -> None:
        self._thread.start()
        assert self._first.wait(120), "the pilots were not heard"

    def __exit__(self, *exc: object) -> None:
        self._over.set()
        self._thread.join()

    async def _beat(self) -> None:
        serial = 0
        async with Client(self._url) as client:
            while not self._over.is_set():
                serial += 1
                for number in range(self._count):
                    await client.sync(self._request(number, serial))
                    if self._first.is_set() and not self._over.is_set():
                        await asyncio.sleep(BEAT_S / self._count)
                self._first.set()

    @staticmethod
    def _request(number: int, serial: int) -> SyncRequest:
        capacity = Capacity(slots=8, cpus=8.0, memory_bytes=32 << 30, disk_bytes=200 << 30, system="linux")
        return SyncRequest(
            pilot=PilotId(f"pilot-{number:03}"),
            serial=serial,
            host=f"node{number % HOSTS:03}",
            site=SITES[number % len(SITES)],
            capacity=capacity,
            want=0,
            heard=serial - 1,
            ttl_ms=8 * 3_600_000,
        )
