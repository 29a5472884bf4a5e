"""Keeps the files that flows were read from: one for each version of a flow, found by its name and digest.

The model decides what is another version. A file with other comments is the same version, whose file is the newer."""

from collections.abc import Callable
from typing import Final

import msgspec
from msgspec.structs import replace

from mendflow.core.data.url_passwords import hide_passwords
from mendflow.core.model.errors import Conflict
from mendflow.core.model.flow_files import FlowFileView, FlowSource
from mendflow.core.model.ids import Instant
from mendflow.core.model.retention import GRACE_MIN_MS
from mendflow.services.base.cluster import CASE_KIND
from mendflow.services.base.contracts import TRIES, Clock
from mendflow.services.base.ledger import Ledger
from mendflow.stores.contract import FieldCondition, Store

FLOW_FILE_KIND: Final = "flow-file"
NOTED_MS: Final = 60_000
"""That a file was sent again is noted no more often: what was sent within minutes is not removed."""

NO_FILE: Final = (
    "no file came with this version: it was given as a model, as the API takes it, came out of an archive without its"
    " file, or before files were kept"
)
NO_FILE_OF_CALLED: Final = (
    "no file came with this flow itself: it is in the file of the flow that called it, or was given as a model, or"
    " before files were kept"
)
NO_FILE_OF_EXLET: Final = (
    "no file came with this flow itself: it is an exlet, which came with rules or with an order to mend, or was given"
    " as a model, or before files were kept"
)


class FlowFileNotKept(Conflict):
    """The version of the flow is stored, and its file is not."""


class FlowFileDocument(msgspec.Struct, kw_only=True):
    """`tentative`: a case was started with it; the next such file of the same version replaces it. `used_at`: when it
    was last sent, or little before."""

    name: str
    digest: str
    file: str
    text: str = ""
    left_out: str = ""
    at: Instant = 0
    by: str = ""
    used_at: Instant = 0
    tentative: bool = False

    def says_the_same(self, other: "FlowFileDocument") -> bool:
        return (self.file, self.text, self.left_out) == (other.file, other.text, other.left_out)


_decode = msgspec.json.Decoder(FlowFileDocument).decode


class FlowFileStore:
    def __init__(self, store: Store, ledger: Ledger, clock: Clock) -> None:
        self._store = store
        self._ledger = ledger
        self._clock = clock

    async def put(self, name: str, digest: str, source: FlowSource, *, who: str, tentative: bool) -> None:
        """Keep the file of this version, without passwords in the clear. One that a version was deployed with is
        replaced by deploying that version again, and not by starting a case of it."""
        now = self._clock.now()
        made = FlowFileDocument(
            name=name,
            digest=digest,
            file=source.file,
            text=hide_passwords(source.text),
            left_out=source.left_out,
            at=now,
            by=who,
            used_at=now,
            tentative=tentative,
        )
        await self._change(name, digest, lambda kept: _newer(kept, made), is_deployed=not tentative)

    async def adopt(self, name: str, digest: str) -> None:
        """This version is deployed, with no other file than the one that may be there."""
        await self._change(name, digest, _adopted, is_deployed=True)

    async def _change(
        self,
        name: str,
        digest: str,
        change: Callable[[FlowFileDocument | None], FlowFileDocument | None],
        *,
        is_deployed: bool,
    ) -> None:
        """`is_deployed`: the version is, whether or not its file can be kept."""
        for _ in range(TRIES):
            found = await self._store.get(FLOW_FILE_KIND, id_of(name, digest))
            made = change(_decode(found.body) if found is not None else None)
            if made is None:
                return
            version = found.version if found is not None else 0
            if await self._ledger.put_now(FLOW_FILE_KIND, id_of(name, digest), made, version) is not None:
                return
        file = f"flow {name} is deployed, but not its file: that" if is_deployed else f"the file of flow {name}"
        raise FlowFileNotKept(f"{file} is sent by several at once, again and again; send it once more")

    async def is_kept(self, name: str, digest: str) -> bool:
        return await self._store.get(FLOW_FILE_KIND, id_of(name, digest)) is not None

    async def drop_unnamed(self, name: str) -> None:
        """A flow was removed: the files of its versions go that no case names. One that was sent within minutes stays:
        its case may begin just now."""
        since = self._clock.now() - GRACE_MIN_MS
        scanned = {found.id: found async for found in self._store.scan(FLOW_FILE_KIND, id_of(name, ""))}
        kept = {id: found for id, found in scanned.items() if _decode(found.body).used_at < since}
        if not kept:
            return
        await self._ledger.settled()
        await self._store.refresh()
        digests = [id.removeprefix(id_of(name, "")) for id in kept]
        where = [FieldCondition("flow", name), FieldCondition("digest", [*digests], "in")]
        named = {id_of(name, each) for each in await self._store.count(CASE_KIND, where, by="digest")}
        gone = [(each.id, None, each.version) for each in kept.values() if each.id not in named]
        await self._ledger.put_all_now(FLOW_FILE_KIND, gone)

    async def find(self, name: str, digest: str, reason: str = NO_FILE) -> FlowFileView:
        """`reason` is why there may be none."""
        found = await self._store.get(FLOW_FILE_KIND, id_of(name, digest))
        if found is None:
            return FlowFileView(flow=name, digest=digest, reason=reason)
        kept = _decode(found.body)
        return FlowFileView(
            flow=name, digest=digest, file=kept.file, text=kept.text, reason=kept.left_out, at=kept.at, by=kept.by
        )


def id_of(name: str, digest: str) -> str:
    return f"{name}@{digest}"


def _adopted(kept: FlowFileDocument | None) -> FlowFileDocument | None:
    return replace(kept, tentative=False) if kept is not None and kept.tentative else None


def _newer(kept: FlowFileDocument | None, made: FlowFileDocument) -> FlowFileDocument | None:
    """What is stored from now on; None: what is there stays as it is."""
    if kept is None or kept.tentative > made.tentative:
        return made
    if made.tentative > kept.tentative:
        return None
    if not kept.says_the_same(made):
        return made
    return replace(kept, used_at=made.used_at) if made.used_at - kept.used_at >= NOTED_MS else None
