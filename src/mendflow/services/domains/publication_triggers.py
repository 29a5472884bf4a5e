"""Which flows a published file starts: those of the data set that it is added to, and those of watched folders that it
would lie in. Where it will lie depends on the pilot; every storage element that it may go to counts."""

from collections.abc import Iterator

from mendflow.core.data.name_mapping import place_of
from mendflow.core.data.paths import OutsideElement, place_below
from mendflow.core.model.data import Publication, StorageElement
from mendflow.core.model.data_sets import FolderWatch
from mendflow.services.data.catalogue.catalogue import Catalogue
from mendflow.services.data.sets.service import DataSets
from mendflow.services.data.watches.service import WatchService


class PublicationTriggers:
    def __init__(self, sets: DataSets, watches: WatchService, catalogue: Catalogue) -> None:
        self._sets = sets
        self._watches = watches
        self._catalogue = catalogue

    async def flows_started_by(self, published: Publication) -> set[str]:
        """The names of the flows that this file could start."""
        started = await self._flows_of_set(published.data_set) if published.data_set else set()
        elements = {each.name: each for each in await self._catalogue.elements.all()}
        places = list(_places(published, elements))
        for view in await self._watches.all():
            element = elements.get(view.watch.element)
            if element is not None and any(_is_watched(view.watch, element, place) for place in places):
                started |= await self._flows_of_set(view.watch.data_set) | ({view.flow} if view.flow else set())
        return started

    async def _flows_of_set(self, name: str) -> set[str]:
        found = await self._sets.find(name)
        return {pool.rule.flow for pool in found.pools.values() if not pool.removed} if found is not None else set()


def _places(published: Publication, elements: dict[str, StorageElement]) -> Iterator[str]:
    if published.url:
        yield published.url
        return
    for element in elements.values():
        if published.element in ("", element.name):
            try:
                yield place_of(element, published.logical)
            except OutsideElement:
                continue  # it cannot be put there


def _is_watched(watch: FolderWatch, element: StorageElement, place: str) -> bool:
    """Whether a place is below the folder; which names the watch wants does not matter, as these can be chosen."""
    folder = place_below(element.url, watch.prefix) if watch.prefix else element.url
    return f"{_plain(place)}/".startswith(f"{_plain(folder)}/")


def _plain(url: str) -> str:
    """A URL with one spelling, whatever slashes and dots it was written with."""
    scheme, _, rest = url.partition(":")
    parts: list[str] = []
    for part in rest.split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in ("", "."):
            parts.append(part)
    return f"{scheme}:{'/'.join(parts)}"
