"""Storage elements, logical files and their replicas, data sets, and the contents of a pilot's cache.

A logical file has a name, a size and a digest; its replicas change. A reader looks into a cache by the digest first,
then asks the catalogue for replicas. A name does not imply a place: an element's rules, or its prefix, map it to
one."""

from typing import Annotated, Literal

import msgspec

from mendflow.core.model.ids import Instant, JobId, PilotId
from mendflow.core.model.principals import DEFAULT_PROJECT
from mendflow.core.model.values import FileRef

LOGICAL_PREFIX = "lfn:"
"""Prefix of a source that is a logical file: `lfn:/store/raw/run7/a.dat`."""


class NameRule(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One rule of a trivial file catalogue. A name that `match` matches completely becomes `result`, in which `$1` to
    `$9` are the groups. With `chain`, the rules of that protocol are applied to the name first. The first matching rule
    counts."""

    protocol: str
    match: str
    result: str
    chain: str = ""
    destination: str = ".*"  # the sites that it is for, as a pattern


class NameRules(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A trivial file catalogue: maps names to places, and back."""

    to_physical: tuple[NameRule, ...] = ()
    to_logical: tuple[NameRule, ...] = ()


class StorageElement(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A place for files, by an fsspec URL: `file:///data`, `s3://bucket/prefix`. A logical file is at the URL followed
    by its name, unless `rules` say otherwise. `options` are those of its protocol; a value `env:NAME` is taken from the
    environment of the reader or writer, so that no secret is stored here. `sites` are those near it. While it is away,
    a pilot keeps the files to be written for `patience_ms`."""

    name: str
    url: str
    sites: tuple[str, ...] = ()
    options: dict[str, str | int | float | bool] = {}
    rules: NameRules | None = None
    protocol: str = ""  # which of the rules apply here
    tries: int = 4
    timeout_ms: int = 60_000
    patience_ms: int = 600_000
    chunk_bytes: int = 4 << 20
    streams: int = 4  # parallel transfers
    read_only: bool = False


class Replica(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where a logical file is. `path` is below the element's URL; empty: where the element's rules put that name."""

    element: str
    path: str = ""


class LogicalFile(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The catalogue's document of a file. A name never gets other content. `writing` are the jobs that were told where
    to write it, and the places: each becomes a replica when the job's result is accepted. A file without replicas
    cannot be read; its name is reserved for the jobs that write it. `left` are other contents that jobs were told to
    write under this name and that were never accepted: remains of them may be overwritten."""

    name: str
    sha256: str
    bytes: int
    replicas: tuple[Replica, ...] = ()
    data_set: str = ""
    project: str = DEFAULT_PROJECT
    made_by: str = ""  # the job
    added_at: Instant = 0
    meta: dict[str, str] = {}
    writing: dict[str, Replica] = {}
    left: tuple[str, ...] = ()  # digests

    def ref(self) -> FileRef:
        return FileRef(sha256=self.sha256, bytes=self.bytes, name=self.name.rpartition("/")[2], logical=self.name)


class Publication(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How an output of a job is published: written to a storage element (by default the one near the pilot) under a
    logical name, and added to the catalogue when the job's result is accepted. `data_set` is the data set to add it to.

    With `url` it is written there instead, and neither the catalogue nor the server has it. An existing file there is
    replaced if it may be overwritten; otherwise it stays, and the attempt fails."""

    logical: str = ""
    element: str = ""
    data_set: str = ""
    url: str = ""
    overwrite: bool = True


class ReplicaLocation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A source or a target of a logical file for a pilot: an element, and the full URL of the file there."""

    element: StorageElement
    url: str


class LocateRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A pilot asks where it can read logical files. `storage` is its nearest element, if it knows one. Without a name
    it asks for that element, to check whether it can reach it."""

    pilot: PilotId
    names: list[str]
    site: str = ""
    storage: str = ""


class LocateAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The places of each name, the nearest first. A name that can be read nowhere is in `wrong` instead, with the
    reason. `near` is the pilot's element, if it asked for nothing else."""

    files: dict[str, list[ReplicaLocation]] = {}
    wrong: dict[str, str] = {}
    near: StorageElement | None = None


class OutputPlacement(msgspec.Struct, frozen=True, kw_only=True):
    """An output to be published, with its digest and size, which are known before anything is written."""

    publication: Publication
    file: FileRef


class PlaceRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A pilot asks where the outputs of a job go, each under its name in the job's `files`. The elements in `avoid`
    refused them: outputs that need not be on one of these may go elsewhere."""

    pilot: PilotId
    job: JobId
    files: dict[str, OutputPlacement]
    site: str = ""
    storage: str = ""
    avoid: tuple[str, ...] = ()


class PlaceAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Where to write each output. One that may not be written, because its logical name has other content, its place
    belongs to another file, or no element takes it, is in `wrong` instead, with the reason. An existing file at a place
    that is neither the output nor listed in `replaces` (by digest) stays."""

    files: dict[str, ReplicaLocation] = {}
    wrong: dict[str, str] = {}
    replaces: dict[str, tuple[str, ...]] = {}


CACHE_FILES_MAX = 16_384
"""So many files of one pilot's cache are reported and remembered, the newest."""


class CachedFile(msgspec.Struct, frozen=True, array_like=True):
    sha256: str
    bytes: int


class CacheUpdate(msgspec.Struct, frozen=True, array_like=True):
    """The contents of a pilot's cache, as changes since `base`; `base` 0 means the full list. `version` counts changes.
    A server that does not have `base` ignores the changes and says in its answer which version it has; the pilot
    continues from there, or sends the full list. `folder` is where pilots on the same host find the cache; empty if it
    is not shared. `address` and `key` are where, and with which secret, pilots of the same site may fetch from it."""

    version: int
    base: int
    added: Annotated[list[CachedFile], msgspec.Meta(max_length=CACHE_FILES_MAX)] = []
    gone: Annotated[list[str], msgspec.Meta(max_length=CACHE_FILES_MAX)] = []  # digests
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
    """A pilot of the site that has a file, as far as the server knows; asked first."""

    sha256: str
    neighbour: Neighbour


class CacheAdvert(msgspec.Struct, frozen=True, array_like=True):
    """How a pilot's cache is shared, as servers tell each other: only pilots with the same token may use it."""

    neighbour: Neighbour
    owner: str  # the name of the pilot's token
    site: str


Sharing = Literal["none", "host", "site"]


class StoreRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A pilot sends the contents of many small files at once, each under its SHA-256."""

    contents: dict[str, bytes]


class StoreAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """How many files the server has stored: all of them."""

    stored: int
