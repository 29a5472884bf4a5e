"""Servers as people are shown them."""

from mendflow.core.model.views import Health
from mendflow.services.base.clock import SystemClock, steady_ms
from mendflow.services.base.cluster import NO_PEERS, ServerDocument
from mendflow.services.cluster.membership import PeerState, ServerMembership
from mendflow.services.cluster.overview import ClusterOverview
from mendflow.stores.memory import MemoryStore


def test_what_an_ended_server_had_is_not_counted_a_second_time() -> None:
    own = ServerDocument(id="one", url="", lease_ms=7_500)
    membership = ServerMembership(store=MemoryStore(), clock=SystemClock(), own=own)
    for id, ended in (("dead", True), ("lives", False)):
        other = ServerDocument(id=id, url="", ended=ended, cases=1, waiting=2, running=3, pilots=4)
        membership.peer_states[id] = PeerState(other, 1, steady_ms())
    health = Health("ok", "0", 0, "memory", 0, 0, 0, 0)
    _, dead, lives = ClusterOverview(membership, NO_PEERS, steady_ms).servers(health)
    assert (dead.state, dead.cases, dead.waiting, dead.running, dead.pilots) == ("ended", 0, 0, 0, 0)
    assert (lives.state, lives.cases, lives.waiting, lives.running, lives.pilots) == ("alive", 1, 2, 3, 4)
