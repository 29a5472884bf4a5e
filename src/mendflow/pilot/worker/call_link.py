"""The worker's end of the link to its slot: calls come in, results go out, and shared memory tells which call has
started."""

import socket
from collections.abc import Iterator

import msgspec

from mendflow.pilot.slot.messages import CallBatch, CallResult, FrameReader, frame
from mendflow.pilot.worker.progress import CallProgress

_READ_BYTES = 1 << 20


class CallLink:
    def __init__(self, connection: socket.socket, progress: CallProgress) -> None:
        self._connection = connection
        self.progress = progress
        self._encoder = msgspec.msgpack.Encoder()

    def batches(self) -> Iterator[CallBatch]:
        """The calls that the slot sends, until it closes its end."""
        frames = FrameReader()
        decoder = msgspec.msgpack.Decoder(CallBatch)
        while data := self._connection.recv(_READ_BYTES):
            for encoded in frames.feed(data):
                yield decoder.decode(encoded)

    def send(self, result: CallResult) -> None:
        self.send_encoded(self._encoder.encode(result))

    def send_encoded(self, result: bytes) -> None:
        self._connection.sendall(frame(result))

    def close(self) -> None:
        """Let go of it all: this process is to run the code of a flow, which has no business with the slot."""
        self._connection.close()
        self.progress.close()
