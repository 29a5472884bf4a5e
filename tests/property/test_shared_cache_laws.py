"""Caches of pilots on one host, on a real disk, whatever pilots, jobs and vandals do to them.

What a job is given is always what it asked for. A cache keeps to its size, and what is in use stays, whoever else has
let go of it."""

import shutil
import tempfile
from collections import Counter
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from mendflow.core.caching.policies import POLICIES
from mendflow.core.caching.sizes import cache_bytes
from mendflow.core.model.data import Neighbour
from mendflow.core.model.ids import PilotId
from mendflow.pilot.cache.entries import GUESTS, DamagedEntry, is_digest
from mendflow.pilot.cache.shared import CacheOptions, SharedCache
from tests.examples import examples
from tests.pilot.cache.files import bringing, digest_of, folder_bytes

PILOTS = 3
CONTENTS = [bytes([number]) * (number * 7) for number in range(10)]
pilots = st.integers(0, PILOTS - 1)
contents = st.sampled_from(CONTENTS)


class SharedCacheLaws(RuleBasedStateMachine):
    """PJ-5, PJ-6, PJ-11."""

    @initialize(policy=st.sampled_from(sorted(POLICIES)), space=st.integers(40, 160))
    def begin(self, policy: str, space: int) -> None:
        self.top = Path(tempfile.mkdtemp(prefix="mendflow-laws-"))
        self.options = CacheOptions(space_bytes=space, threshold_bytes=20, policy=policy)
        self.folders = [self.top / f"p{number}" for number in range(PILOTS)]
        for folder in self.folders:
            folder.mkdir()
        self.pins: list[Counter[bytes]] = [Counter() for _ in range(PILOTS)]
        self.broken: set[bytes] = set()  # a vandal was at one of its links
        self.lied = False  # somebody has said another digest than a file has
        self.jobs = 0
        self.left: list[set[str]] = [set() for _ in range(PILOTS)]  # guests that a killed pilot had
        self.caches = [self.started(number) for number in range(PILOTS)]

    def teardown(self) -> None:
        """When all jobs are over and every pilot has looked around, they keep to the size of the host together."""
        if not hasattr(self, "top"):
            return
        try:
            for pilot, pins in enumerate(self.pins):
                for content, count in pins.items():
                    self.caches[pilot].disk.release([digest_of(content)] * count)
            for cache in [*self.caches, *self.caches]:
                cache.rebalance()
            held = {path.name: path.stat().st_size for folder in self.folders for path in folder.iterdir()}
            if not self.lied:
                assert sum(held.values()) <= cache_bytes(self.options.space_bytes, 20, pilots=PILOTS)
            if not self.lied and not self.broken:
                assert sum(held.values()) == folder_bytes(*self.folders), "each is on the disk once"
        finally:
            shutil.rmtree(self.top)

    def started(self, number: int) -> SharedCache:
        cache = SharedCache(self.folders[number], self.options, host="here", first_version=1, patience_s=0)
        others = [folder for other, folder in enumerate(self.folders) if other != number]
        cache.set_neighbours([Neighbour(PilotId(folder.name), "here", str(folder)) for folder in others], mark=1)
        return cache

    @rule(pilot=pilots, content=contents, link=st.booleans(), said=st.booleans())
    def a_job_wants_a_file(self, pilot: int, content: bytes, link: bool, said: bool) -> None:
        disk, digest = self.caches[pilot].disk, digest_of(content)
        disk.pin(digest)
        self.pins[pilot][content] += 1
        entry = disk.take_in(digest, bringing(content), size=len(content) if said else 0)
        assert Path(entry.path).read_bytes() == content and entry.bytes == len(content)
        self.jobs += 1
        target = self.top / f"input{self.jobs}"
        disk.give(digest, str(target), link=link)
        assert target.read_bytes() == content
        self.has_it(pilot, content)

    def at(self, pilot: int, content: bytes) -> Path:
        """Where it is, if it is there: in the cache or beside it."""
        inside = self.folders[pilot] / digest_of(content)
        return inside if inside.exists() else Path(f"{self.folders[pilot]}{GUESTS}", digest_of(content))

    def has_it(self, pilot: int, content: bytes) -> None:
        """What is given as a copy to the only one who uses it, and does not stay, is handed over."""
        if not self.at(pilot, content).exists():
            assert digest_of(content) not in self.caches[pilot].disk.digests()
            self.a_job_ends(pilot, content)

    @rule(pilot=pilots, content=contents)
    def a_job_ends(self, pilot: int, content: bytes) -> None:
        if self.pins[pilot][content]:
            self.pins[pilot][content] -= 1
            self.caches[pilot].disk.release([digest_of(content)])

    @rule(pilot=pilots, content=contents, lie=st.none() | contents)
    def a_job_has_made_a_file(self, pilot: int, content: bytes, lie: bytes | None) -> None:
        claimed = content if lie is None else lie
        made = self.top / "output"
        made.write_bytes(content)
        self.lied |= content != claimed
        self.caches[pilot].disk.adopt(str(made), digest_of(claimed))
        made.unlink()

    @rule(pilot=pilots)
    def a_pilot_looks_around(self, pilot: int) -> None:
        self.caches[pilot].rebalance()

    @rule(pilot=pilots)
    def a_pilot_is_killed_and_comes_back(self, pilot: int) -> None:
        self.left[pilot] = {path.name for path in Path(f"{self.folders[pilot]}{GUESTS}").iterdir()}
        self.caches[pilot] = self.started(pilot)
        self.pins[pilot].clear()

    @rule(pilot=pilots, content=contents)
    def a_vandal_writes_into_a_file(self, pilot: int, content: bytes) -> None:
        path = self.folders[pilot] / digest_of(content)
        if path.exists() and (there := path.read_bytes()):
            path.chmod(0o600)
            path.write_bytes(bytes([there[0] ^ 1]) * len(there))  # what makes it larger is beyond anybody's power
            self.broken.add(content)

    @rule(pilot=pilots, content=contents)
    def a_vandal_removes_a_file(self, pilot: int, content: bytes) -> None:
        path = self.folders[pilot] / digest_of(content)
        if path.exists():
            path.unlink()
            self.broken.add(content)

    @rule(pilot=pilots, content=contents)
    def what_is_at_hand_is_right(self, pilot: int, content: bytes) -> None:
        entry = self.caches[pilot].disk.lookup(digest_of(content))
        if entry is not None:
            assert Path(entry.path).read_bytes() == content

    @rule(pilot=pilots, content=contents)
    def what_is_given_is_right(self, pilot: int, content: bytes) -> None:
        """Even if nobody has asked whether it still is."""
        if not self.pins[pilot][content]:
            return
        target = self.top / "given"
        try:
            self.caches[pilot].disk.give(digest_of(content), str(target), link=False)
        except (DamagedEntry, FileNotFoundError):
            assert not target.exists()
        else:
            assert target.read_bytes() == content
            target.unlink()
            self.has_it(pilot, content)

    @invariant()
    def each_keeps_to_its_size(self) -> None:
        for number, cache in enumerate(self.caches):
            disk = cache.disk
            pinned = sum(len(content) for content, pins in self.pins[number].items() if pins)
            assert disk.held_bytes <= max(disk.size_bytes, pinned)

    @invariant()
    def together_they_keep_to_the_size_of_the_host(self) -> None:
        """At every moment, whoever has looked around or not. What a file is said to be and is not has another size than
        the one that others have under its name."""
        assert self.lied or folder_bytes(*self.folders) <= cache_bytes(self.options.space_bytes, 20, pilots=PILOTS)

    @invariant()
    def what_is_on_the_shelf_is_on_the_disk_and_nothing_else(self) -> None:
        broken = {digest_of(content) for content in self.broken}
        for number, cache in enumerate(self.caches):
            used = {digest_of(content) for content, pins in self.pins[number].items() if pins}
            there = {path.name for path in self.folders[number].iterdir()}
            assert all(map(is_digest, there)), "nothing is left of what was on its way"
            assert cache.disk.digests() - broken <= there
            assert there - cache.disk.digests() <= broken
            guests = {path.name for path in Path(f"{self.folders[number]}{GUESTS}").iterdir()}
            assert guests <= used | self.left[number] | broken, "guests are there as long as they are used"

    @invariant()
    def what_is_in_use_stays_whoever_else_lets_go_of_it(self) -> None:
        for number, pins in enumerate(self.pins):
            for content, count in pins.items():
                if count and content not in self.broken:
                    assert self.at(number, content).read_bytes() == content


TestSharedCacheLaws = SharedCacheLaws.TestCase  # PJ-5, PJ-6, PJ-11
TestSharedCacheLaws.settings = settings(max_examples=examples(40), stateful_step_count=40, deadline=None)
