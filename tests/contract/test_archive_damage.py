"""An archive that is not what it was when it was written is refused whole, with the place and the reason."""

import asyncio
import gzip
import io
import random
import re
import zlib
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from mendflow.core.model.ids import CaseId
from mendflow.services.api.archive import records as format
from mendflow.services.api.archive.checking import check_archive
from mendflow.services.api.archive.kinds import SHARED_KINDS
from mendflow.services.api.archive.records import (
    AnyRecord,
    BadArchive,
    DocumentRecord,
    FileRecord,
    HeadRecord,
    JournalRecord,
    Packer,
    PieceRecord,
    TreeRecord,
)
from mendflow.services.retention.tree_kinds import TREE_KINDS
from mendflow.stores.memory import MemoryStore
from tests.contract.archived import archive_of_one, content, packed, records, unpacked, world_on

Records = list[AnyRecord]


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return asyncio.run(archive_of_one(tmp_path_factory.mktemp("archive")))[1]


def written(changed: Records) -> bytes:
    packer = Packer()
    return b"".join([packer.pack(each) for each in changed]) + packer.end()


def refusal(data: bytes) -> str:
    with pytest.raises(BadArchive) as caught:
        check_archive(io.BytesIO(data))
    return caught.value.message


def test_written_again_it_is_the_same(archive: bytes) -> None:
    assert content(written(records(archive))) == content(archive)
    assert len(check_archive(io.BytesIO(archive)).trees) == 1


@pytest.mark.full
def test_any_byte_that_is_changed_is_found_or_means_nothing(archive: bytes) -> None:
    chance, wanted, found = random.Random(4), content(archive), 0
    places = [
        *range(40),
        *(chance.randrange(len(archive)) for _ in range(300)),
        *range(len(archive) - 40, len(archive)),
    ]
    for place in places:
        damaged = bytearray(archive)
        damaged[place] ^= 1 << chance.randrange(8)
        try:
            check_archive(io.BytesIO(bytes(damaged)))
        except BadArchive:
            found += 1
            continue
        assert content(bytes(damaged)) == wanted
    assert found > 300


@pytest.mark.full
def test_any_byte_that_is_changed_before_it_was_packed_is_found(archive: bytes) -> None:
    """Beneath gzip, which has a sum of its own, ours finds it alone."""
    plain, chance = gzip.decompress(archive), random.Random(5)
    for _ in range(200):
        damaged = bytearray(plain)
        damaged[chance.randrange(len(plain) - 1)] ^= 1 << chance.randrange(8)
        refusal(gzip.compress(bytes(damaged)))


def test_wherever_it_is_cut_it_is_refused(archive: bytes) -> None:
    for length in [0, 1, 10, *range(11, len(archive), 997), len(archive) - 1]:
        refusal(archive[:length])
    plain = gzip.decompress(archive)
    for length in range(0, len(plain), 4_999):
        refusal(gzip.compress(plain[:length]))
    refusal(archive + b"x")
    refusal(archive + archive)


def test_what_unpacks_to_very_much_is_refused_before_it_is_held(
    archive: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    bomb = zlib.compressobj(9, zlib.DEFLATED, 31)
    line = b"".join([bomb.compress(b" " * (1 << 20)) for _ in range(80)]) + bomb.flush()
    assert "a line is longer than 64 MB" in refusal(line)
    monkeypatch.setattr(format, "UNPACKED_BYTES_MAX", 1000)
    assert "unpacks to more than" in refusal(archive)


def _line(body: bytes) -> bytes:
    head = msgspec.json.encode(HeadRecord(made_at=1, made_by="x", files=False))
    return gzip.compress(b"%b\n%b\n" % (head, body), 1)


@pytest.mark.parametrize(
    "body",
    [
        b'{"record":"document","kind":"pattern","id":"p","body":{"repair":{"settings":{"a":[%b]}}}}',
        b'{"record":"journal","case":"x","position":0,"entries":[%b]}',
    ],
)
def test_a_line_of_very_many_parts_is_refused_before_anything_is_built_of_it(body: bytes) -> None:
    """Each of its parts would take thirty times its length in memory."""
    many = b"{}," * (format.LINE_PARTS_MAX // 2) + b"{}"
    assert "record 2 of the archive: it has more than 8,000,000 parts" in refusal(_line(body % many))


def test_commas_and_brackets_in_texts_are_no_parts() -> None:
    text = b'{[,\\",' * (format.LINE_PARTS_MAX // 4)
    file = b'{"record":"document","kind":"flow-file","id":"f@1","body":{"name":"f","digest":"1","file":"","text":"%b"}}'
    assert "it ends too early" in refusal(_line(file % text))


def _head(found: Records) -> Records:
    assert isinstance(found[0], HeadRecord)
    return [replace(found[0], version=2), *found[1:]]


def _each(change: Callable[[AnyRecord], AnyRecord | None]) -> Callable[[Records], Records]:
    return lambda found: [new for each in found if (new := change(each)) is not None]


def _kept(of: str, **changes: object) -> Callable[[AnyRecord], AnyRecord | None]:
    return lambda each: replace(each, **changes) if isinstance(each, DocumentRecord) and each.kind == of else each


def _without(type: type, kind: str = "") -> Callable[[AnyRecord], AnyRecord | None]:
    return lambda each: None if isinstance(each, type) and getattr(each, "kind", kind) == kind else each


def _later(each: AnyRecord) -> AnyRecord:
    return replace(each, position=each.position + 1) if isinstance(each, JournalRecord) else each


def _named(root: str) -> Callable[[AnyRecord], AnyRecord]:
    return lambda each: replace(each, root=CaseId(root)) if isinstance(each, TreeRecord) else each


def _entry(each: AnyRecord) -> AnyRecord:
    return (
        replace(each, entries=[msgspec.Raw(b'{"at":1,"fact":{"type":"nope"}}')])
        if isinstance(each, JournalRecord)
        else each
    )


def _twice(found: Records) -> Records:
    start = next(place for place, each in enumerate(found) if isinstance(each, TreeRecord))
    end = next(place for place, each in enumerate(found) if isinstance(each, FileRecord))
    return [*found[:end], *found[start:]]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (_head, "version 2; this mendflow reads 1"),
        (lambda found: found[1:], "does not begin as one"),
        (lambda found: [found[0], *found], "begins a second time"),
        (_each(_kept("job", kind="secret")), "does not belong to case"),
        (_each(_kept("job", id="other-1/1")), "does not belong to case"),
        (_each(_kept("job", id="../../etc/passwd")), "does not belong to case"),
        (_each(_kept("flow", kind="server")), "stands before the first case"),
        (_each(_kept("case", body=msgspec.Raw(b'{"id":"x"}'))), "cannot be read"),
        (_each(_kept("job", body=msgspec.Raw(b"[]"))), "cannot be read"),
        (_each(_without(DocumentRecord, "case")), "is not whole"),
        (_each(_without(JournalRecord)), "is not whole"),
        (_each(_later), "has a hole"),
        (_each(_entry), "cannot be read"),
        (_each(_named("../x")), "is no case's id"),
        (_each(_named("last")), "no case can be called 'last': that is a word for the newest case"),
        (_each(_named("f-other")), "does not belong"),
        (_twice, "comes a second time"),
        (_each(_without(PieceRecord)), "does not have the content"),
        (
            _each(lambda each: replace(each, sha256="../" * 21 + "x") if isinstance(each, FileRecord) else each),
            "no digest",
        ),
        (_each(lambda each: replace(each, base64="!") if isinstance(each, PieceRecord) else each), "not base64"),
        (
            _each(lambda each: PieceRecord.of(b"other") if isinstance(each, PieceRecord) else each),
            "does not have the content",
        ),
    ],
)
def test_what_was_made_up_is_refused_with_its_reason(
    archive: bytes, change: Callable[[Records], Records], reason: str
) -> None:
    assert reason in refusal(written(change(records(archive))))


def _added(kind: str, id: str, body: object) -> Callable[[Records], Records]:
    """Another document where those of its kind stand: before the first case, or in its tree."""
    document = DocumentRecord(kind, id, msgspec.Raw(msgspec.json.encode(body)))

    def change(found: Records) -> Records:
        tree = next(place for place, each in enumerate(found) if isinstance(each, TreeRecord))
        place = (
            tree if kind in SHARED_KINDS else next(i for i, each in enumerate(found) if isinstance(each, FileRecord))
        )
        return [*found[:place], document, *found[place:]]

    return change


def _root(archive: bytes) -> str:
    return next(each.root for each in records(archive) if isinstance(each, TreeRecord))


def _flow(name: str, inner: str) -> dict[str, object]:
    body = {"kind": "job", "name": "a", "command": "true"}
    return {"name": name, "digest": "", "version": 1, "deployed_at": 1, "flow": {"name": inner, "body": body}}


def _task(case: str) -> dict[str, object]:
    return {"id": "ROOT/98", "case": case, "item": "a", "serial": 98, "role": "r", "title": "t"}


@pytest.mark.parametrize("kind", [*SHARED_KINDS, *TREE_KINDS])
def test_a_document_that_says_nothing_of_what_it_is_is_refused(archive: bytes, kind: str) -> None:
    """Whatever its kind: the service that reads it would fail, and a server that reads it at its start."""
    id = "x" if kind in SHARED_KINDS else f"{_root(archive)}/99"
    said = refusal(written(_added(kind, id, {})(records(archive))))
    assert re.match(rf"record \d+ of the archive: {kind} '{re.escape(id)}' (cannot be read: Object|is not what)", said)


CIRCLE = {"root": 1, "rules": {"1": {"id": 1, "condition": "true", "on_false": 1}}}


@pytest.mark.parametrize(
    ("kind", "id", "body", "reason"),
    [
        (
            "compensation",
            "c",
            {"task": "other", "flow": "f"},
            "in it is compensation 'other'",
        ),
        ("rules", "g", {"name": "*"}, "in it is rules '\\*'"),
        ("rules", "g/1", {"name": "g/1"}, "'g/1' is not a valid name for a rule set"),
        ("flow", "../g", _flow("../g", "../g"), "'../g' is not a valid name for a flow"),
        ("flow", "g", _flow("g", "f"), "its flow has another name, 'f'"),
        ("flow-version", "g@2", _flow("g", "g"), "in it is flow-version 'g@1'"),
        ("rules-version", "g/00000001", {"name": "g", "version": 2}, "in it is rules-version 'g/00000002'"),
        ("rules", "g", {"name": "g", "trees": {"abort": {"a": CIRCLE}}}, "rules 'g': rule 1 hangs on two rules"),
        ("pattern", "p", {"conversation": {"name": "p", "messages": "("}}, "pattern 'p': "),
        ("pattern", "p", {}, "in it is pattern ''"),
        ("storage", "s", {"name": "s", "url": "nowhere"}, "storage 's': "),
        ("place", "x", {"element": "s", "path": "a", "name": "/a"}, "in it is place"),
        ("file", "a", {"name": "a", "sha256": "", "bytes": 1}, "it must begin with `/`"),
        ("task", "ROOT/98", _task("other-1"), "is about case 'other-1', which is not of its tree"),
        ("task", "ROOT/98", _task("ROOT") | {"id": "ROOT/97"}, "in it is task '.*/97'"),
        ("open-decision", "ROOT/98", {"id": "other-1/1"}, "in it is open-decision 'other-1/1'"),
    ],
)
def test_a_document_that_is_another_or_makes_no_sense_is_refused(
    archive: bytes, kind: str, id: str, body: dict[str, object], reason: str
) -> None:
    said = msgspec.json.decode(msgspec.json.encode(body).replace(b"ROOT", _root(archive).encode()))
    id = id.replace("ROOT", _root(archive))
    assert re.search(reason, refusal(written(_added(kind, id, said)(records(archive)))))


async def test_a_refused_archive_leaves_no_trace(archive: bytes, tmp_path: Path) -> None:
    async with world_on(MemoryStore(), tmp_path) as there:
        before = content(await packed(there.domain, everything=True))
        made_up = [
            written(change(records(archive)))
            for change in (_each(_later), _added("compensation", "c", {}), _added("task", f"{_root(archive)}/99", {}))
        ]
        for damaged in (archive[:-1], b"", b"no archive", *made_up):
            with pytest.raises(BadArchive):
                await unpacked(there.domain, damaged)
        assert content(await packed(there.domain, everything=True)) == before
        assert await there.domain.cases() == []
        assert [path for path in (tmp_path / "files").rglob("*") if path.is_file()] == []
