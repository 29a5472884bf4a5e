"""What a slot must know to start a job's command in a container."""

import msgspec

from mendflow.core.model.faults import Fault


class ContainerRefused(Exception):
    """A job cannot have its container here."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


class ContainerNotes(msgspec.Struct, frozen=True):
    """The folder in which it is noted which containers run on this host, and the runtime of the pilot that reads it:
    one of core/model/containers.RUNTIMES, and the words that start its program."""

    folder: str
    kind: str
    command: tuple[str, ...]


class ContainerStart(msgspec.Struct, frozen=True, array_like=True):
    """`kind` is one of core/model/containers.RUNTIMES, `command` the words that start its program, `extra` the
    pilot's own options for `run`. `image` is what is run: the id of an image, or the path of a file; `digest` says for
    people and for the result cache which content that is. `mounts` are triples: source, target, whether it may only be
    read. `records` is the folder in which the slot notes that the container runs."""

    kind: str
    command: tuple[str, ...]
    image: str
    digest: str
    records: str
    extra: tuple[str, ...] = ()
    mounts: tuple[tuple[str, str, bool], ...] = ()
    options: tuple[str, ...] = ()
    network: str = ""
