"""Data sets: files that arrive, the cases that are started for them, and watched storage elements."""

from typing import Annotated

from litestar import Router, delete, get, post, put
from litestar.params import FromPath, JSONBody, QueryParameter

from mendflow.core.model.data_sets import BatchView, DataSetSpec, DataSetView, FolderWatch, WatchView
from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.values import FileRef
from mendflow.server.routes.cases import RequestBody
from mendflow.server.routes.parameters import Limit, TheCaller, TheDomain


class Arrived(RequestBody, frozen=True):
    """Files that have arrived: `names` are logical files, `kept` are files stored on the server."""

    names: list[str] = []
    kept: list[FileRef] = []


@get("/data/sets", summary="Data sets, by name")
async def data_sets(
    domain: TheDomain,
    every: Annotated[bool, QueryParameter(name="all", description="Those that are over too.")] = False,
) -> list[DataSetView]:
    return await domain.data_sets(every=every)


@get("/data/sets/{name:str}", summary="A data set: its files, what waits, and what was started")
async def data_set(domain: TheDomain, name: FromPath[str]) -> DataSetView:
    return await domain.data_set(name)


@put("/data/sets/{name:str}", summary="Make a data set, or say anew what follows from its files")
async def put_data_set(
    domain: TheDomain, caller: TheCaller, name: FromPath[str], data: JSONBody[DataSetSpec]
) -> DataSetView:
    """Cases that the data set starts belong to the caller. A gathering that exists already, by its name, continues
    where it was; a new one is given the files that are there."""
    if data.name != name:
        raise InvalidRequest(f"the data set is called {data.name!r} in the body and {name!r} in the path", field="name")
    return await domain.put_data_set(data, who=caller.name)


@get("/data/sets/{name:str}/files", summary="The files of a data set, in the order in which they came")
async def set_files(
    domain: TheDomain,
    name: FromPath[str],
    limit: Limit = 1000,
    offset: Annotated[int, QueryParameter(ge=0, description="So many are passed over.")] = 0,
) -> list[FileRef]:
    return await domain.set_files(name, limit=limit, offset=offset)


@post("/data/sets/{name:str}/files", status_code=200, summary="Say that files have arrived")
async def add_to_set(domain: TheDomain, caller: TheCaller, name: FromPath[str], data: JSONBody[Arrived]) -> DataSetView:
    """The set is created if it does not exist. A file that is added twice counts once. Refused if the set is closed."""
    return await domain.add_to_set(name, [*data.names, *data.kept], who=caller.name)


@get("/data/sets/{name:str}/batches", summary="The batches of a data set and their cases, the newest first")
async def set_batches(
    domain: TheDomain,
    name: FromPath[str],
    status: Annotated[
        str, QueryParameter(description="Only these: waiting, running, completed, failed or cancelled.")
    ] = "",
    limit: Limit = 1000,
) -> list[BatchView]:
    return await domain.set_batches(name, status=status, limit=limit)


@post("/data/sets/{name:str}/close", status_code=200, summary="Close a data set: nothing more comes")
async def close_set(domain: TheDomain, caller: TheCaller, name: FromPath[str]) -> DataSetView:
    """The files that wait are handed on in one last batch."""
    return await domain.close_set(name, who=caller.name)


@post(
    "/data/sets/{name:str}/batches/{gathering:str}/{number:int}/retry",
    status_code=200,
    summary="Start another case for a batch whose case did not complete",
)
async def retry_batch(
    domain: TheDomain, caller: TheCaller, name: FromPath[str], gathering: FromPath[str], number: FromPath[int]
) -> BatchView:
    """The results of the jobs that completed are reused."""
    return await domain.retry_batch(name, gathering, number, who=caller.name)


@get("/data/watches", summary="Watched storage elements")
async def watches(domain: TheDomain) -> list[WatchView]:
    return await domain.watches()


@put("/data/watches/{name:str}", summary="Watch a folder of a storage element")
async def put_watch(
    domain: TheDomain, caller: TheCaller, name: FromPath[str], data: JSONBody[FolderWatch]
) -> WatchView:
    """The server scans that folder from now on. For administrators."""
    if data.name != name:
        raise InvalidRequest(f"the watch is called {data.name!r} in the body and {name!r} in the path", field="name")
    return await domain.put_watch(data, who=caller.name)


@delete("/data/watches/{name:str}", status_code=200, summary="Watch no more")
async def remove_watch(domain: TheDomain, caller: TheCaller, name: FromPath[str]) -> WatchView:
    """Files that it found stay in their data set. For administrators."""
    return await domain.remove_watch(name, who=caller.name)


ROUTES = Router(
    "/",
    route_handlers=[
        data_sets,
        data_set,
        put_data_set,
        set_files,
        add_to_set,
        set_batches,
        close_set,
        retry_batch,
        watches,
        put_watch,
        remove_watch,
    ],
    tags=["data sets"],
)
