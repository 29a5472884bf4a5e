"""The process that replays long journals: it reads their entries, and tells what the engine did, until its input ends,
as it does when the server has ended. It gives way to everything else on the machine."""

import os
import resource
import sys
from typing import BinaryIO, Final

import msgspec

from mendflow.core.model.ids import CaseId
from mendflow.services.observe.journal_reader import JournalReader
from mendflow.services.observe.long_journals import LENGTH_BYTES, ReplayedJournal, ReplayTask

NICENESS: Final = 10
MEMORY_BYTES_MAX: Final = 4 << 30


def main() -> None:
    os.nice(NICENESS)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES_MAX, resource.getrlimit(resource.RLIMIT_AS)[1]))
    serve(sys.stdin.buffer, sys.stdout.buffer)


def serve(source: BinaryIO, target: BinaryIO) -> None:
    decode = msgspec.msgpack.Decoder(ReplayTask).decode
    encode = msgspec.msgpack.Encoder().encode
    reader, case = JournalReader(CaseId("")), CaseId("")
    while length := source.read(LENGTH_BYTES):
        task = decode(source.read(int.from_bytes(length, "big")))
        if task.anew or task.case != case:
            reader, case = JournalReader(task.case), task.case
        for entry in task.entries:
            reader.take(entry)
        told = ReplayedJournal()
        if task.last is not None:
            told = ReplayedJournal(*reader.last_entries(task.last, brief=task.brief))
        answer = encode(told)
        target.write(len(answer).to_bytes(LENGTH_BYTES, "big"))
        target.write(answer)
        target.flush()


if __name__ == "__main__":
    main()
