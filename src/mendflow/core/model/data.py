"""Data where it lies: storage elements, logical files and their replicas, data sets, and what a pilot's cache holds.

A logical file is known by its name, its size and its digest; where it lies is another matter, and changes. Whoever
needs it looks into a cache by the digest first, then asks where replicas are. A name says nothing about a place: an
element's rules, or its prefix, make a place of it."""

from typing import Literal

import msgspec

from mendflow.core.model.ids import Instant, JobId, PilotId
from mendflow.core.model.values import FileRef

LOGICAL_PREFIX = "lfn:"
"""What a source begins with that names a logical file: `lfn:/store/raw/run7/a.dat`."""


class NameRule(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One rule of a trivial file catalogue. A name that `match` matches whole becomes `result`, in which `$1` to `$9`
    are the groups. With `chain`, the rules of that protocol are applied to the name first. The first rule that matches
    counts."""

    protocol: str
    match: str
    result: str
    chain: str = ""
    destination: str = ".*"  # the sites that it is meant for, as a pattern


class NameRules(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A trivial file catalogue: from names to places, and back."""

    to_physical: tuple[NameRule, ...] = ()
    to_logical: tuple[NameRule, ...] = ()


class StorageElement(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A place for files, by an fsspec URL: `file:///data`, `s3://bucket/prefix`. A logical file lies there at the URL
    followed by its name, unless `rules` say otherwise. `options` are those of its protocol; a value `env:NAME` is taken
    from the environment of whoever reads or writes, so that no secret stands here. `sites` are those near it. While it
    is away, a pilot keeps what is to be written there for `patience_ms`."""

    name: str
    url: str
    sites: tuple[str, ...] = ()
    options: dict[str, str | int | float | bool] = {}
    rules: NameRules | None = None
    protocol: str = ""  # of the rules: which of them count here
    tries: int = 4
    timeout_ms: int = 60_000
    patience_ms: int = 600_000
    chunk_bytes: int = 4 << 20
    streams: int = 4  # files at a time
    read_only: bool = False


class Replica(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where a logical file lies. `path` is below the element's URL; empty: where the element puts that name."""

    element: str
    path: str = ""


class LogicalFile(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The catalogue's document of a file. A name never gets another content: that is another file. `writing` are the
    jobs that have been told where to write it, and where that is: it becomes a replica when the job's result is
    accepted. A file without replicas cannot be read; its name is kept for the jobs that write it. `left` are other
    contents that jobs were told to write under this name, and that never were it: what of them still lies somewhere is
    nobody's."""

    name: str
    sha256: str
    bytes: int
    replicas: tuple[Replica, ...] = ()
    data_set: str = ""
    made_by: str = ""  # the job
    added_at: Instant = 0
    meta: dict[str, str] = {}
    writing: dict[str, Replica] = {}
    left: tuple[str, ...] = ()  # digests

    def ref(self) -> FileRef:
        return FileRef(sha256=self.sha256, bytes=self.bytes, name=self.name.rpartition("/")[2], logical=self.name)


class Publication(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What becomes of a file that a job made: it is written to a storage element (the one near the pilot, if none is
    named) under a logical name, and told to the catalogue when the job's result is accepted. `data_set` gathers it.

    With `url` it is taken there instead, and neither the catalogue nor the server's keeping has it: whoever named the
    place looks after it. What lies there is replaced if it may be overwritten; else another file there is left alone,
    and the attempt fails."""

    logical: str = ""
    element: str = ""
    data_set: str = ""
    url: str = ""
    overwrite: bool = True


class ReplicaLocation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A source or a target of a logical file, as a pilot is told: an element, and the full URL of the file there."""

    element: StorageElement
    url: str


class LocateRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A pilot asks where it can read logical files. `storage` is the element that it reaches best, if it knows one.
    Without a name it asks what that element is, to see whether it reaches it."""

    pilot: PilotId
    names: list[str]
    site: str = ""
    storage: str = ""


class LocateAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The places of each name, the nearest first. A name that can be read nowhere is in `wrong` instead, with a
    sentence that says why. `near` is the pilot's element, told to one that asked for nothing else."""

    files: dict[str, list[ReplicaLocation]] = {}
    wrong: dict[str, str] = {}
    near: StorageElement | None = None


class OutputPlacement(msgspec.Struct, frozen=True, kw_only=True):
    """An output that is to be published, and what it is: its content is known before anything is written."""

    publication: Publication
    file: FileRef


class PlaceRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A pilot asks where the outputs of a job go, each under the name that it has in the job's `files`. The elements in
    `avoid` did not take them: what the job does not want there in particular may go elsewhere."""

    pilot: PilotId
    job: JobId
    files: dict[str, OutputPlacement]
    site: str = ""
    storage: str = ""
    avoid: tuple[str, ...] = ()


class PlaceAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Where each output is to be written. One that may not be, because its logical name has another content, its place
    is another file's, or no element takes it, is in `wrong` instead, with a sentence. What lies at a place and is
    neither the output nor one of those whose digests are in `replaces` is not ours, and stays."""

    files: dict[str, ReplicaLocation] = {}
    wrong: dict[str, str] = {}
    replaces: dict[str, tuple[str, ...]] = {}


class CachedFile(msgspec.Struct, frozen=True, array_like=True):
    sha256: str
    bytes: int


class CacheUpdate(msgspec.Struct, frozen=True, array_like=True):
    """What a pilot's cache holds, as changes since `base`; a `base` of 0 tells everything. `version` counts changes. A
    server that does not have `base` ignores the changes, and says in its answer what it has: the pilot goes on from
    there, or tells everything. `folder` is where pilots on the same host find the cache; empty if it is not shared.
    `address` and `key` are where and under which secret pilots of the same site may fetch from it."""

    version: int
    base: int
    added: list[CachedFile] = []
    gone: list[str] = []  # digests
    folder: str = ""
    address: str = ""
    key: str = ""


class Neighbour(msgspec.Struct, frozen=True, array_like=True):
    """Another pilot whose cache may be used: on the same host by links (`folder`), on the same site over its
    `address`."""

    pilot: PilotId
    host: str
    folder: str = ""
    address: str = ""
    key: str = ""


class Holder(msgspec.Struct, frozen=True, array_like=True):
    """A pilot of the site that has a file, as far as the server knows: worth asking for it first."""

    sha256: str
    neighbour: Neighbour


class CacheAdvert(msgspec.Struct, frozen=True, array_like=True):
    """How a pilot's cache is shared, as servers tell each other: only pilots of the same token may use it."""

    neighbour: Neighbour
    owner: str  # the name of the token that the pilot speaks under
    site: str


Sharing = Literal["none", "host", "site"]
