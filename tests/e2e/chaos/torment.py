"""What is done to the fleet, drawn by a seed: kills, stops, cuts and restarts of the store, again and again.

Troubles come in rounds. In each, every kind of trouble happens, in an order and at moments of its own, so that a short
run has seen all of them. What was done, to whom, and from when to when, is kept for whoever judges."""

import heapq
import random
import sys
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count

from tests.e2e.chaos.fleet import PILOTS, SERVERS, Fleet, now_us

PAUSE_S = (0.8, 2.6)
PEACE = 4
"""A store is left in peace for so many times as long as it was away: nothing goes on without it."""

SERVERS_OUT_MAX = 2
PILOTS_OUT_MAX = 3
ROUND = (
    *("server killed", "server killed", "server stopped"),
    *("agent killed", "pilot killed", "pilot killed", "pilot stopped"),
    *("line cut", "pilot cut off", "store killed"),
)


@dataclass(slots=True)
class Trouble:
    """`until_us` is 0 while it lasts. A server that was killed is back when it can be asked."""

    kind: str
    whom: str
    at_us: int
    until_us: int = 0

    def lasts(self, at_us: int) -> bool:
        return self.at_us <= at_us and (not self.until_us or at_us < self.until_us)


class Torment:
    def __init__(self, fleet: Fleet, seed: int) -> None:
        self._fleet = fleet
        self._chance = random.Random(seed)
        self._round: list[str] = []
        self._later: list[tuple[float, int, Callable[[], None]]] = []
        self._serial = count()
        self._out: set[str] = set()
        self._store = ThreadPoolExecutor(1)
        self._restarting: Future[None] | None = None
        self._store_in_peace_until_us = 0
        self._starting: list[Trouble] = []
        self.troubles: list[Trouble] = []

    def go_on_until(self, over: Callable[[], bool], trouble_s: float, patience_s: float) -> None:
        """Make trouble until it is over, for a while at most; then make good what is still amiss, and wait for the
        rest. Trouble comes by the clock: without an end, a machine on which all is slow would have no time to work."""
        calm = time.monotonic() + trouble_s
        due = time.monotonic() + 1
        while not over() and time.monotonic() < calm:
            now = time.monotonic()
            while self._later and self._later[0][0] <= now:
                heapq.heappop(self._later)[2]()
            self._look_who_is_back()
            if now >= due:
                self._make_trouble()
                due = time.monotonic() + self._chance.uniform(*PAUSE_S)
            time.sleep(0.02)
        while self._later:
            heapq.heappop(self._later)[2]()
        if self._restarting is not None:
            self._restarting.result()
        self._store.shutdown()
        end = time.monotonic() + patience_s
        while not over():
            self._look_who_is_back()
            assert time.monotonic() < end, (
                f"not over {patience_s} s after the last of {len(self.troubles)} troubles: {self._fleet.log()}"
            )
            time.sleep(0.1)

    def _make_trouble(self) -> None:
        if not self._round:
            self._round = self._chance.sample(ROUND, len(ROUND))
        kind = self._round[-1]
        who = kind.partition(" ")[0]
        victim = "store" if who == "store" else self._victim(SERVERS if who == "server" else PILOTS)
        if not victim:
            return  # enough are out; a little later
        self._round.pop()
        if who == "store" and now_us() < self._store_in_peace_until_us:
            return
        trouble = Trouble(kind, victim, now_us())
        self.troubles.append(trouble)
        _DO[kind](self, trouble)

    def _victim(self, among: tuple[str, ...]) -> str:
        up = [name for name in among if name not in self._out]
        out_max = SERVERS_OUT_MAX if among is SERVERS else PILOTS_OUT_MAX
        return self._chance.choice(up) if len(among) - len(up) < out_max else ""

    def _over_later(self, trouble: Trouble, after_s: tuple[float, float], make_good: Callable[[], None]) -> None:
        self._out.add(trouble.whom)

        def over() -> None:
            make_good()
            self._out.discard(trouble.whom)
            if trouble not in self._starting:
                trouble.until_us = now_us()

        at = time.monotonic() + self._chance.uniform(*after_s)
        heapq.heappush(self._later, (at, next(self._serial), over))

    def _look_who_is_back(self) -> None:
        for trouble in [each for each in self._starting if self._fleet.listens(each.whom)]:
            trouble.until_us = now_us()
            self._starting.remove(trouble)

    # The kinds

    def _kill_server(self, trouble: Trouble) -> None:
        self._fleet.kill(trouble.whom)
        for before in [each for each in self._starting if each.whom == trouble.whom]:
            before.until_us = trouble.at_us  # it did not come back: this is the next
            self._starting.remove(before)

        def start() -> None:
            self._fleet.start_server(trouble.whom)
            self._starting.append(trouble)

        self._over_later(trouble, (0.2, self._fleet.lease_s), start)

    def _stop_server(self, trouble: Trouble) -> None:
        self._fleet.stop(trouble.whom)
        self._over_later(trouble, self._past_lease(), lambda: self._fleet.go_on(trouble.whom))

    def _kill_agent(self, trouble: Trouble) -> None:
        self._fleet.kill(trouble.whom)
        self._over_later(trouble, (0, 2), self._restart_pilot(trouble.whom))

    def _kill_pilot(self, trouble: Trouble) -> None:
        self._fleet.kill_whole(trouble.whom)
        self._over_later(trouble, (0, self._fleet.lease_s + 4), self._restart_pilot(trouble.whom))

    def _stop_pilot(self, trouble: Trouble) -> None:
        self._fleet.stop_whole(trouble.whom)
        self._over_later(trouble, self._past_lease(), lambda: self._fleet.go_on_whole(trouble.whom))

    def _cut_line(self, trouble: Trouble) -> None:
        server = self._chance.choice(SERVERS)
        self._fleet.part(trouble.whom, server)
        self._over_later(trouble, (1, self._fleet.lease_s + 2), lambda: self._fleet.join(trouble.whom, server))

    def _cut_off(self, trouble: Trouble) -> None:
        def join() -> None:
            for server in SERVERS:
                self._fleet.join(trouble.whom, server)

        for server in SERVERS:
            self._fleet.part(trouble.whom, server)
        self._over_later(trouble, self._past_lease(), join)

    def _kill_store(self, trouble: Trouble) -> None:
        def restart() -> None:
            self._fleet.store.kill()
            self._fleet.store.start()
            trouble.until_us = back_us = now_us()
            self._store_in_peace_until_us = back_us + PEACE * (back_us - trouble.at_us)

        self._store_in_peace_until_us = sys.maxsize
        self._restarting = self._store.submit(restart)

    def _past_lease(self) -> tuple[float, float]:
        return (self._fleet.lease_s + 1, self._fleet.lease_s + 3)

    def _restart_pilot(self, name: str) -> Callable[[], None]:
        server = self._chance.choice(SERVERS)
        return lambda: self._fleet.start_pilot(name, server)


_DO: dict[str, Callable[[Torment, Trouble], None]] = {
    "server killed": Torment._kill_server,
    "server stopped": Torment._stop_server,
    "agent killed": Torment._kill_agent,
    "pilot killed": Torment._kill_pilot,
    "pilot stopped": Torment._stop_pilot,
    "line cut": Torment._cut_line,
    "pilot cut off": Torment._cut_off,
    "store killed": Torment._kill_store,
}
