"""The items of the index, and the four operations on them: write, fetch, find, refresh.

An item is a document, a chunk of a stream, or a tombstone. Its version is the position of its last write in the shard's
history: primary term and sequence number, combined into one growing number. A write at a version succeeds only if the
item's last write is that one.

An item records its writer's mark, one for each write, and the versions and marks of the few writes before. So a writer
that lost an answer can find out later whether its write happened, even if others have written since. A deleted document
leaves a tombstone for the same reason."""

from collections.abc import Sequence
from typing import Any

import msgspec

from mendflow.stores.elastic.http import ClusterClient, ClusterRetries, unavailable
from mendflow.stores.elastic.indices import store_of

Json = dict[str, Any]
ItemHistory = list[tuple[int, str]]
"""Earlier versions of an item, the latest first, each with its writer's mark if known."""

ID_BYTES_MAX = 512
FETCH_MAX = 500
DELETED_TOGETHER = 1_000
SEEN_FIELDS = ("mark", "past", "gone")
_SEQUENCE_BITS = 40


class IndexedItem(msgspec.Struct, frozen=True):
    id: str
    version: int
    source: Json

    @property
    def mark(self) -> str:
        return str(self.source["mark"])

    @property
    def past(self) -> ItemHistory:
        return [(version, mark) for version, mark in self.source["past"]]

    @property
    def gone(self) -> bool:
        return "gone" in self.source


class ItemWrite(msgspec.Struct, frozen=True):
    """One write; version 0 means that the item must not exist."""

    id: str
    at: int
    source: bytes | None  # JSON; None deletes the item


class ItemResult(msgspec.Struct, frozen=True):
    """`status` is as in HTTP: 409 means that the item is not at the version. Without success, `version` is 0."""

    status: int
    version: int = 0
    trouble: str = ""


def version_of(hit: Json) -> int:
    sequence: int = hit["_seq_no"]
    term: int = hit["_primary_term"]
    return term << _SEQUENCE_BITS | sequence + 1


def is_valid_version(version: int) -> bool:
    """Whether this number can be a version."""
    return version >> _SEQUENCE_BITS > 0 and version & (1 << _SEQUENCE_BITS) - 1 > 0


class ItemIndex:
    def __init__(self, http: ClusterClient) -> None:
        self.http = http
        self.index = store_of(http.address)

    async def write(self, lines: Sequence[ItemWrite], patience: ClusterRetries) -> tuple[list[ItemResult], bool]:
        """The result of each write, in order, and whether they may have been carried out before."""
        raw = b"".join(_ndjson(line) for line in lines)
        # An index that was deleted must not be re-created automatically, without its mapping.
        path = f"/{self.index}/_bulk?require_alias=true&timeout=5s"
        answer = await self.http.ask("POST", path, raw, patience=patience)
        return [_made(item) for item in answer.data["items"]], answer.uncertain

    async def copy_to(self, index: str, lines: Sequence[ItemWrite]) -> None:
        """Write items into a history index where they are missing; all or an error."""
        raw = b"".join(_ndjson(line) for line in lines)
        patience = self.http.patience()
        while True:
            answer = await self.http.ask("POST", f"/{index}/_bulk?timeout=5s", raw, patience=patience)
            failed = [made for made in map(_made, answer.data["items"]) if made.status >= 300 and made.status != 409]
            if not failed:
                return
            await patience.rest(failed[0].trouble)

    async def fetch(
        self, ids: Sequence[str], *fields: str, patience: ClusterRetries | None = None
    ) -> dict[str, IndexedItem]:
        """The current items, not those that searches see."""
        patience = patience or self.http.patience()
        found: dict[str, IndexedItem] = {}
        for start in range(0, len(ids), FETCH_MAX):
            for hit in await self._fetched(self.index, ids[start : start + FETCH_MAX], fields, patience):
                if hit.get("found"):
                    found[hit["_id"]] = item(hit)
        return found

    async def _fetched(
        self, index: str, ids: Sequence[str], fields: Sequence[str], patience: ClusterRetries
    ) -> list[Json]:
        body = msgspec.json.encode({"ids": list(ids)})
        path = f"/{index}/_mget?_source_includes={','.join((*SEEN_FIELDS, *fields))}"
        while True:
            answer = await self.http.ask("POST", path, body, patience=patience)
            hits: list[Json] = answer.data["docs"]
            errors = [hit["error"] for hit in hits if "error" in hit]
            if not errors:
                return hits
            # An item that cannot be read now is not a missing item.
            await self._passing(errors[0], patience)

    async def fetch_from(self, index: str, ids: Sequence[str], *fields: str) -> dict[str, Json]:
        """Sources from a history index."""
        hits = await self._fetched(index, ids, fields, self.http.patience())
        return {hit["_id"]: hit["_source"] for hit in hits if hit.get("found")}

    async def find(self, search: Json) -> Json:
        """Items as of the last refresh. All or an error: never a part."""
        path = f"/{self.index}/_search?allow_partial_search_results=false"
        patience = self.http.patience()
        while True:
            answer = await self.http.ask("POST", path, msgspec.json.encode(search), patience=patience)
            if not answer.data["timed_out"] and not answer.data["_shards"]["failed"]:
                found: Json = answer.data
                return found
            await patience.rest("a shard did not answer")

    async def delete_where(self, index: str, query: Json) -> None:
        """Delete the items that searches find, in one index or in all that match a pattern. Returns when none is found
        any more. Asks for nothing that a cluster may lack: deleting by a query is a module of its own."""
        search = msgspec.json.encode({"query": query, "size": DELETED_TOGETHER, "_source": False})
        path = f"/{index}/_search?ignore_unavailable=true&allow_no_indices=true&allow_partial_search_results=false"
        patience = self.http.patience()
        while True:
            answer = await self.http.ask("POST", path, search, patience=patience)
            if answer.data["timed_out"] or answer.data["_shards"]["failed"]:
                await patience.rest("a shard did not answer")
                continue
            hits: list[Json] = answer.data["hits"]["hits"]
            if not hits:
                return
            lines = ({"delete": {"_index": hit["_index"], "_id": hit["_id"]}} for hit in hits)
            raw = b"".join(msgspec.json.encode(line) + b"\n" for line in lines)
            made = await self.http.ask("POST", "/_bulk?refresh=true&timeout=5s", raw, patience=patience)
            if any(each["delete"]["status"] not in (200, 404) for each in made.data["items"]):
                await patience.rest("items could not be deleted at once")

    async def refresh(self) -> None:
        patience = self.http.patience()
        while True:
            answer = await self.http.ask("POST", f"/{self.index}/_refresh", patience=patience)
            shards = answer.data["_shards"]
            if shards["successful"] and not shards["failed"]:
                return
            await patience.rest("a shard did not answer")

    async def _passing(self, error: Json, patience: ClusterRetries) -> None:
        what = f"{error['type']}: {error.get('reason', '')}"[:300]
        if error["type"] == "index_not_found_exception":
            raise unavailable(
                self.http.address, f"its index is gone ({what}): restore it, or start over with an empty one"
            )
        await patience.rest(what)


def item(hit: Json) -> IndexedItem:
    return IndexedItem(hit["_id"], version_of(hit), hit["_source"])


def _ndjson(line: ItemWrite) -> bytes:
    action: Json = {"_id": line.id}
    if line.at:
        action |= {
            "if_seq_no": (line.at & (1 << _SEQUENCE_BITS) - 1) - 1,
            "if_primary_term": line.at >> _SEQUENCE_BITS,
        }
    if line.source is None:
        return msgspec.json.encode({"delete": action}) + b"\n"
    head = msgspec.json.encode({"index" if line.at else "create": action})
    return head + b"\n" + line.source + b"\n"


def _made(answer: Json) -> ItemResult:
    (result,) = answer.values()
    status: int = result["status"]
    if status < 300:
        return ItemResult(status, version_of(result))
    error = result["error"]
    return ItemResult(status, 0, f"{error['type']}: {error.get('reason', '')}"[:300])
