"""Logical files, and the storage elements that they lie on."""

from typing import Annotated

from litestar import Router, delete, get, post
from litestar.params import FromPath, JSONBody, QueryParameter
from msgspec.structs import asdict

from mendflow.core.model.data import LogicalFile, Replica, ReplicaLocation, StorageElement
from mendflow.server.routes.parameters import Limit, Text, TheCaller, TheDomain

AfterName = Annotated[str, QueryParameter(description="The last name of the page before.")]
OfSet = Annotated[str, QueryParameter(name="set", description="Only files of this data set.")]
Every = Annotated[bool, QueryParameter(name="all", description="Also names that are kept for a job that is writing.")]
Replacing = Annotated[bool, QueryParameter(description="Whether one that is there, and other, is to change.")]


class FileWish(LogicalFile, frozen=True, forbid_unknown_fields=True):
    """A file that exists on a storage element. `made_by`, `added_at` and `writing` cannot be set by callers."""


class ElementWish(StorageElement, frozen=True, forbid_unknown_fields=True):
    """A storage element. Secrets are given as `env:NAME`, never as their values."""


@get("/data/files", summary="Logical files, by name")
async def data(
    domain: TheDomain,
    prefix: Text = "",
    data_set: OfSet = "",
    after: AfterName = "",
    limit: Limit = 100,
    every: Every = False,
) -> list[LogicalFile]:
    return await domain.data(prefix=prefix, data_set=data_set, after=after, limit=limit, every=every)


@post("/data/files", status_code=200, summary="Take in a file that lies somewhere")
async def add_data(domain: TheDomain, caller: TheCaller, data: JSONBody[FileWish]) -> LogicalFile:
    """If the file is already known, the new replicas are added to it. The content of a name never changes."""
    return await domain.add_data(LogicalFile(**asdict(data)), who=caller.name)


@get("/data/files/{name:path}", summary="A logical file")
async def datum(domain: TheDomain, name: FromPath[str]) -> LogicalFile:
    return await domain.datum(name)


@delete("/data/files/{name:path}", status_code=200, summary="Forget a logical file")
async def remove_data(domain: TheDomain, caller: TheCaller, name: FromPath[str]) -> LogicalFile:
    """The replicas on storage elements are not deleted. For administrators."""
    return await domain.remove_data(name, who=caller.name)


@get("/places/{name:path}", summary="Where a file would be read")
async def places(domain: TheDomain, name: FromPath[str], site: Text = "", storage: Text = "") -> list[ReplicaLocation]:
    """The places where a pilot of that site would read the file, the nearest first."""
    return await domain.places(name, site=site, storage=storage)


@post("/replicas/{name:path}", status_code=200, summary="Say that a file lies somewhere else too")
async def add_replica(
    domain: TheDomain, caller: TheCaller, name: FromPath[str], data: JSONBody[Replica]
) -> LogicalFile:
    return await domain.add_replica(name, data, who=caller.name)


@delete("/replicas/{name:path}", status_code=200, summary="Forget one place of a file")
async def remove_replica(
    domain: TheDomain, caller: TheCaller, name: FromPath[str], element: Text, path: Text = ""
) -> LogicalFile:
    """The last replica cannot be removed. For administrators."""
    return await domain.remove_replica(name, Replica(element=element, path=path), who=caller.name)


@get("/data/storage", summary="The storage elements")
async def elements(domain: TheDomain) -> list[StorageElement]:
    return await domain.elements()


@post("/data/storage", status_code=200, summary="Add a storage element")
async def put_element(
    domain: TheDomain, caller: TheCaller, data: JSONBody[ElementWish], replace: Replacing = False
) -> StorageElement:
    """Adds the storage element, or changes it. For administrators."""
    return await domain.put_element(StorageElement(**asdict(data)), who=caller.name, replace=replace)


@get("/data/storage/{name:str}", summary="A storage element")
async def element(domain: TheDomain, name: FromPath[str]) -> StorageElement:
    return await domain.element(name)


@delete("/data/storage/{name:str}", status_code=200, summary="Remove a storage element")
async def remove_element(domain: TheDomain, caller: TheCaller, name: FromPath[str]) -> StorageElement:
    """The files on it are not deleted, but can no longer be found. For administrators."""
    return await domain.remove_element(name, who=caller.name)


ROUTES = Router(
    "/",
    route_handlers=[
        data,
        add_data,
        datum,
        remove_data,
        places,
        add_replica,
        remove_replica,
        elements,
        put_element,
        element,
        remove_element,
    ],
    tags=["data"],
)
