"""A slot's connection to its agent. There may be none, it may break at any time, and a new agent may connect.

Messages are buffered and sent without blocking: an agent that does not read must not keep the slot from watching its
job."""

import select
import socket

import msgspec

from mendflow.pilot.slot.messages import AttemptKey, FinishedAttempt, FrameReader, FromSlot, Heartbeat, ToSlot, frame
from mendflow.pilot.slot.monitor import now_ms

GATHER_MS = 4
"""How long results wait for more of them while there is other work."""

_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(ToSlot)


class AgentChannel:
    """`was_connected` is true once an agent has connected."""

    def __init__(self, listener: socket.socket, poll: "select.poll") -> None:
        self._listener = listener
        self._poll = poll
        self._agent: socket.socket | None = None
        self._incoming = FrameReader()
        self._outgoing = bytearray()
        self._done: list[FinishedAttempt] = []
        self._heartbeats: list[Heartbeat] = []
        self._returned: list[AttemptKey] = []
        self._told_at = 0
        self.was_connected = False
        listener.setblocking(False)
        poll.register(listener, select.POLLIN)

    @property
    def is_connected(self) -> bool:
        return self._agent is not None

    def is_listener(self, descriptor: int) -> bool:
        return descriptor == self._listener.fileno()

    def is_agent(self, descriptor: int) -> bool:
        return self._agent is not None and descriptor == self._agent.fileno()

    def accept(self) -> bool:
        """Accept a new agent; drop the previous connection."""
        try:
            connection, _ = self._listener.accept()
        except BlockingIOError:
            return False
        connection.setblocking(False)
        if self._agent is not None:
            self.drop()
        self._agent, self.was_connected = connection, True
        self._poll.register(connection, select.POLLIN)
        return True

    def greet(self, hello: FromSlot) -> None:
        self._outgoing += frame(_ENCODER.encode(hello))

    def receive(self) -> list[ToSlot] | None:
        """Messages of the agent; None when it is gone."""
        assert self._agent is not None
        try:
            data = self._agent.recv(1 << 20)
        except BlockingIOError:
            return []
        except OSError:
            data = b""
        if not data:
            self.drop()
            return None
        return [_DECODER.decode(encoded) for encoded in self._incoming.feed(data)]

    def drop(self) -> None:
        assert self._agent is not None
        self._poll.unregister(self._agent)
        self._agent.close()
        self._agent = None
        self._incoming = FrameReader()
        self._outgoing.clear()
        self._done, self._heartbeats, self._returned = [], [], []

    def done(self, done: FinishedAttempt) -> None:
        self._done.append(done)

    def heartbeat(self, heartbeat: Heartbeat) -> None:
        self._heartbeats.append(heartbeat)

    def give_back(self, keys: list[AttemptKey]) -> None:
        self._returned += keys

    @property
    def due(self) -> int | None:
        """When the buffered messages must be sent."""
        return self._told_at + GATHER_MS if self._done else None

    def tell(self, *, gather: bool) -> None:
        """Send what is buffered; with `gather`, results alone may wait a moment for more."""
        if self._agent is None:
            self._done, self._heartbeats, self._returned = [], [], []
            return
        urgent = self._heartbeats or self._returned
        if urgent or (self._done and not (gather and now_ms() < self._told_at + GATHER_MS)):
            self._told_at = now_ms()
            self._outgoing += frame(_ENCODER.encode(FromSlot(self._done, self._heartbeats, self._returned)))
            self._done, self._heartbeats, self._returned = [], [], []
        self.flush()

    def flush(self) -> None:
        if self._agent is None or not self._outgoing:
            return
        try:
            sent = self._agent.send(self._outgoing)
            del self._outgoing[:sent]
        except BlockingIOError:
            pass
        except OSError:
            self._outgoing.clear()  # the agent is gone; the next read shows it
        self._poll.modify(self._agent, select.POLLIN | (select.POLLOUT if self._outgoing else 0))

    def close(self) -> None:
        self._listener.close()
