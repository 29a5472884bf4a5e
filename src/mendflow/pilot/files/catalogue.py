"""Where logical files are, and where published ones go: asked of the server when it is needed, and not before.

Replicas come and go while a job waits. So nothing here is remembered, and a job's description names no places."""

from typing import Protocol, TypeVar

import msgspec

from mendflow.core.model.data import LocateAnswer, LocateRequest, OutputPlacement, PlaceAnswer, PlaceRequest
from mendflow.core.model.ids import JobId, PilotId
from mendflow.pilot.agent.http import FileClient, ServerAway

LOCATE_PATH = "/api/v1/pilots/locate"
PLACE_PATH = "/api/v1/pilots/place"
_Answer = TypeVar("_Answer", LocateAnswer, PlaceAnswer)


class FileCatalogue(Protocol):
    """Both block. They raise `ServerAway` when it must be asked again later, and `ServerRefused`."""

    def locate(self, names: list[str]) -> LocateAnswer: ...

    def place(self, job: JobId, files: dict[str, OutputPlacement], avoid: tuple[str, ...] = ()) -> PlaceAnswer:
        """`avoid` are elements that did not take them."""
        ...


class NoFileCatalogue:
    """For a pilot that has nobody to ask."""

    def locate(self, names: list[str]) -> LocateAnswer:
        return LocateAnswer(wrong=dict.fromkeys(names, "there is no catalogue to ask where it is"))

    def place(self, job: JobId, files: dict[str, OutputPlacement], avoid: tuple[str, ...] = ()) -> PlaceAnswer:
        return PlaceAnswer(wrong=dict.fromkeys(files, "there is no catalogue to ask where it goes"))


class ServerFileCatalogue:
    """As the server says, whichever it is at the moment."""

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
            raise ServerAway(f"what came back could not be read: {error}") from None
