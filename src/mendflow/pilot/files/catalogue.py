"""Looks up replicas and destinations of logical files at the server, when they are needed.

Replicas change while a job waits. So nothing is cached here, and a job's description names no locations."""

from typing import Protocol, TypeVar

import msgspec

from mendflow.core.model.data import LocateAnswer, LocateRequest, OutputPlacement, PlaceAnswer, PlaceRequest
from mendflow.core.model.ids import JobId, PilotId
from mendflow.pilot.agent.http import FileClient, ServerAway

LOCATE_PATH = "/api/v1/pilots/locate"
PLACE_PATH = "/api/v1/pilots/place"
_Answer = TypeVar("_Answer", LocateAnswer, PlaceAnswer)


class FileCatalogue(Protocol):
    """Both methods block. They raise `ServerAway` if the caller should retry later, and `ServerRefused`."""

    def locate(self, names: list[str]) -> LocateAnswer: ...

    def place(self, job: JobId, files: dict[str, OutputPlacement], avoid: tuple[str, ...] = ()) -> PlaceAnswer:
        """`avoid` names elements that refused the files."""
        ...


class NoFileCatalogue:
    """For a pilot without a server."""

    def locate(self, names: list[str]) -> LocateAnswer:
        return LocateAnswer(wrong=dict.fromkeys(names, "there is no catalogue in which to look up the file"))

    def place(self, job: JobId, files: dict[str, OutputPlacement], avoid: tuple[str, ...] = ()) -> PlaceAnswer:
        return PlaceAnswer(wrong=dict.fromkeys(files, "there is no catalogue that could name a storage element for it"))


class ServerFileCatalogue:
    """Asks the current server."""

    def __init__(self, files: FileClient, pilot: str, *, site: str, storage: str) -> None:
        self._files = files
        self._pilot = PilotId(pilot)
        self._site = site
        self._storage = storage

    def locate(self, names: list[str]) -> LocateAnswer:
        request = LocateRequest(pilot=self._pilot, names=names, site=self._site, storage=self._storage)
        return self._ask(LOCATE_PATH, request, LocateAnswer)

    def place(self, job: JobId, files: dict[str, OutputPlacement], avoid: tuple[str, ...] = ()) -> PlaceAnswer:
        request = PlaceRequest(
            pilot=self._pilot, job=job, files=files, site=self._site, storage=self._storage, avoid=avoid
        )
        return self._ask(PLACE_PATH, request, PlaceAnswer)

    def _ask(self, path: str, request: LocateRequest | PlaceRequest, kind: type[_Answer]) -> _Answer:
        try:
            return msgspec.msgpack.decode(self._files.ask(path, msgspec.msgpack.encode(request)), type=kind)
        except msgspec.MsgspecError as error:
            raise ServerAway(f"the server's answer could not be read: {error}") from None
