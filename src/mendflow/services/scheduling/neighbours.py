"""Which pilots may use each other's caches: those of one token on one host, by hard links, and on one site, over the
network.

Neighbours change seldom, and are needed in every exchange. So each group of pilots counts its changes, and the
neighbours of a pilot are computed again only when one of its groups has changed. A site may forbid any of this."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from itertools import islice

from mendflow.core.model.data import CacheAdvert, Neighbour, Sharing
from mendflow.core.model.ids import PilotId
from mendflow.core.model.sync import servers_mark

HOST_NEIGHBOURS_MAX, SITE_NEIGHBOURS_MAX = 64, 32
"""How many neighbours a pilot is told of; at a large site each pilot is told of different ones."""

HOLDERS_MAX, EXAMINED_MAX = 4, 32
"""How many pilots with a given file it is told of, and how many holders are considered for that."""


class SharingGroup:
    __slots__ = ("cards", "changes", "ids")

    def __init__(self) -> None:
        self.ids: list[PilotId] = []
        self.cards: dict[PilotId, CacheAdvert] = {}
        self.changes = 0

    def put(self, card: CacheAdvert) -> None:
        id = card.neighbour.pilot
        if id not in self.cards:
            self.ids.insert(bisect_left(self.ids, id), id)
        self.cards[id] = card
        self.changes += 1

    def drop(self, id: PilotId) -> None:
        del self.cards[id]
        del self.ids[bisect_left(self.ids, id)]
        self.changes += 1

    def after(self, id: PilotId, most: int) -> list[CacheAdvert]:
        """Those that come after this one, cyclically and without itself."""
        place = bisect_right(self.ids, id)
        round = [*self.ids[place : place + most], *self.ids[: max(0, place + most - len(self.ids))]]
        return [self.cards[other] for other in dict.fromkeys(round) if other != id][:most]


class SentNeighbours:
    """What a pilot was told, and for which state of its groups."""

    __slots__ = ("mark", "neighbours", "state")

    def __init__(self, state: tuple[object, ...], neighbours: list[Neighbour]) -> None:
        self.state = state
        self.neighbours = neighbours
        words = [f"{each.pilot} {each.folder} {each.address} {each.key}" for each in neighbours]
        self.mark = servers_mark(words)


class NeighbourRegistry:
    def __init__(self) -> None:
        self.sites: dict[str, Sharing] = {}  # how far pilots of a site may share, where the site says so
        self._cards: dict[PilotId, CacheAdvert] = {}
        self._hosts: dict[tuple[str, str], SharingGroup] = {}
        self._sites: dict[tuple[str, str], SharingGroup] = {}
        self._sent: dict[PilotId, SentNeighbours] = {}

    def share(self, sites: dict[str, Sharing]) -> None:
        """From now on pilots of these sites share as far as their site allows."""
        self.sites = sites

    def meet(self, card: CacheAdvert) -> None:
        """A pilot reports how its cache is shared; None if it is not."""
        id, known = card.neighbour.pilot, self._cards.get(card.neighbour.pilot)
        if known == card:
            return
        self.leave(id)
        if card.neighbour.folder or card.neighbour.address:
            self._cards[id] = card
            for circles, key in self._groups_of(card):
                circles.setdefault(key, SharingGroup()).put(card)

    def leave(self, id: PilotId) -> None:
        card = self._cards.pop(id, None)
        self._sent.pop(id, None)
        if card is None:
            return
        for circles, key in self._groups_of(card):
            circles[key].drop(id)
            if not circles[key].ids:
                del circles[key]

    def of(self, id: PilotId) -> tuple[list[Neighbour], int]:
        """A pilot's neighbours, and the mark that identifies this list. A pilot that shares nothing has none."""
        card = self._cards.get(id)
        if card is None:
            return [], 0
        sharing = self.sites.get(card.site, "site")
        (hosts, host), (sites, site) = self._groups_of(card)
        state = (hosts[host].changes, sites[site].changes, sharing)
        sent = self._sent.get(id)
        if sent is None or sent.state != state:
            sent = self._sent[id] = SentNeighbours(state, _shared_neighbours(card, hosts[host], sites[site], sharing))
        return sent.neighbours, sent.mark

    def may_ask_site(self, id: PilotId) -> bool:
        """Whether a pilot may ask others of its site for files."""
        card = self._cards.get(id)
        return card is not None and card.site != "" and card.neighbour.address != "" and self._shares(card)

    def at_site(self, id: PilotId, others: Iterable[PilotId]) -> list[Neighbour]:
        """Those of some pilots that this one may ask because they are on its site; a few, if they are many."""
        own = self._cards[id]
        cards = (self._cards.get(other) for other in islice(others, EXAMINED_MAX))
        mine = [card for card in cards if card is not None and (card.owner, card.site) == (own.owner, own.site)]
        near = [card.neighbour for card in mine if card.neighbour.address and card.neighbour.pilot != id]
        return [Neighbour(each.pilot, each.host, "", each.address, each.key) for each in near[:HOLDERS_MAX]]

    def _shares(self, card: CacheAdvert) -> bool:
        return self.sites.get(card.site, "site") == "site"

    def cards(self) -> list[CacheAdvert]:
        return list(self._cards.values())

    def _groups_of(self, card: CacheAdvert) -> tuple[tuple[dict[tuple[str, str], SharingGroup], tuple[str, str]], ...]:
        return (self._hosts, (card.owner, card.neighbour.host)), (self._sites, (card.owner, card.site))


def _shared_neighbours(card: CacheAdvert, host: SharingGroup, site: SharingGroup, sharing: Sharing) -> list[Neighbour]:
    own, found = card.neighbour, dict[PilotId, Neighbour]()
    if sharing == "none":
        return []
    for other in host.after(own.pilot, HOST_NEIGHBOURS_MAX):
        near = other.neighbour
        address, key = (near.address, near.key) if sharing == "site" and other.site == card.site else ("", "")
        if (own.folder and near.folder) or address:
            found[near.pilot] = Neighbour(near.pilot, near.host, near.folder if own.folder else "", address, key)
    if sharing == "site" and card.site:
        for other in site.after(own.pilot, SITE_NEIGHBOURS_MAX):
            near = other.neighbour
            if near.address and near.pilot not in found:
                found[near.pilot] = Neighbour(near.pilot, near.host, "", near.address, near.key)
    return list(found.values())
