"""Creates and migrates the indices.

Everything is in one index of one shard, behind the alias PREFIX-store. One shard guarantees that the writes of a call
happen in order: a node executes the writes of one request to one shard in order and in one log, so that a crash loses
only an end of them and never leaves a gap. Old stream entries move to one index per month, PREFIX-history-2026.11
(history.py).

The mapping is versioned like a schema. Each step only adds, so running it twice, or on three servers at once, has the
same result. An index with a newer version is refused, because this mendflow does not know what it would break."""

from typing import Any

import msgspec

from mendflow.stores.elastic.address import ElasticAddress
from mendflow.stores.elastic.fields import KNOWN
from mendflow.stores.elastic.http import ClusterClient, unavailable

Json = dict[str, Any]


class MappingStep(msgspec.Struct, frozen=True):
    number: int
    why: str
    properties: Json


_KEYWORD = {"type": "keyword"}
_TERM = {"type": "keyword", "doc_values": False}  # for lookups, never for sorting or counting
_KNOWN = {"properties": {field: _KEYWORD for field in KNOWN}}

MAPPING_STEPS = (
    MappingStep(
        1,
        "Documents: what they are, their tokens, and the fields that are sorted and counted by. Chunks of streams: "
        "which entries they have, and since when. Tombstones: since when. Everything else is kept as it is given.",
        {
            "kind": _KEYWORD,
            "id": _KEYWORD,
            "length": {"type": "integer"},
            "tokens": _TERM,
            "has": _TERM,
            "by": _KNOWN,
            "as": _KNOWN,
            "stream": _KEYWORD,
            "first": {"type": "long"},
            "end": {"type": "long"},
            "month": _KEYWORD,
            "since": {"type": "date", "format": "epoch_millis"},
            "gone": {"type": "date", "format": "epoch_millis"},
        },
    ),
    MappingStep(2, "Logical files are sorted by when they were added.", {"by": _KNOWN, "as": _KNOWN}),
    MappingStep(3, "Cases are counted by the version of their flow.", {"by": _KNOWN, "as": _KNOWN}),
)
NUMBER = MAPPING_STEPS[-1].number


def store_of(address: ElasticAddress) -> str:
    return f"{address.prefix}-store"


def history_of(address: ElasticAddress, month: str) -> str:
    return f"{address.prefix}-history-{month}"


async def prepare(http: ClusterClient) -> None:
    """Create what is missing, migrate what is older, refuse what is newer."""
    alias = store_of(http.address)
    found = await http.ask("GET", f"/{alias}/_mapping", may=[404])
    if found.status == 404:
        await make(http, f"{alias}-1", {"aliases": {alias: {"is_write_index": True}}, **_form(http.address)})
        found = await http.ask("GET", f"/{alias}/_mapping")
    (index,) = found.data.values()
    number = index["mappings"].get("_meta", {}).get("number", 0)
    if number > NUMBER:
        raise unavailable(
            http.address,
            f"it was written by a newer mendflow (mapping {number}, this one knows {NUMBER}): update this one",
        )
    if number < NUMBER:
        await http.ask("PUT", f"/{alias}/_mapping", msgspec.json.encode(_mapping()))
    await _history_template(http)
    await http.ask("GET", f"/_cluster/health/{alias}?wait_for_status=yellow&timeout=5s")


async def make(http: ClusterClient, index: str, form: Json) -> None:
    """Create an index, or find that another server has just created it."""
    made = await http.ask("PUT", f"/{index}", msgspec.json.encode(form), may=[400])
    if made.status == 400 and made.data["error"]["type"] != "resource_already_exists_exception":
        raise unavailable(http.address, f"the index {index} cannot be created: {made.data['error']['reason']}")


async def _history_template(http: ClusterClient) -> None:
    name = f"/_index_template/{http.address.prefix}-history"
    found = await http.ask("GET", name, may=[404])
    if found.status == 200:
        (template,) = found.data["index_templates"]
        if template["index_template"].get("_meta", {}).get("number", 0) >= NUMBER:
            return
    form = _form(http.address)
    form["settings"]["index"]["codec"] = "best_compression"
    body = {
        "index_patterns": [history_of(http.address, "*")],
        "priority": 500,
        "template": form,
        "_meta": {"number": NUMBER},
    }
    await http.ask("PUT", name, msgspec.json.encode(body))


def _form(address: ElasticAddress) -> Json:
    copies = {"number_of_replicas": address.copies - 1} if address.copies else {"auto_expand_replicas": "0-1"}
    return {
        "settings": {
            "index": {
                "number_of_shards": 1,
                **copies,
                "refresh_interval": "1s",
                # A write is acknowledged when it is on the disks of all copies that are up.
                "translog": {"durability": "request"},
            }
        },
        "mappings": _mapping(),
    }


def _mapping() -> Json:
    properties: Json = {}
    for step in MAPPING_STEPS:
        properties |= step.properties
    return {"dynamic": False, "_meta": {"number": NUMBER}, "properties": properties}
