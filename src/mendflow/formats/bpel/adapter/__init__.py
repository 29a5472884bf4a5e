"""The flow adapter: adds interceptors to the invokes of a BPEL process. The result is standard BPEL, which any engine
runs; its calls go through the proxy, which repairs failures."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from mendflow.core.model.errors import BadFlow, Problem
from mendflow.core.xml import parse
from mendflow.core.xml.encodings import decode
from mendflow.formats.bpel import parse_bpel, read_bpel
from mendflow.formats.bpel.adapter.aliases import Aliases
from mendflow.formats.bpel.adapter.calls import InvokeReader
from mendflow.formats.bpel.adapter.file_copies import copy_files, serialize_document
from mendflow.formats.bpel.adapter.text_edits import TextEditor
from mendflow.formats.bpel.adapter.weaving import WeavingReport, select_calls, weave
from mendflow.formats.bpel.ports import port_wsdl
from mendflow.formats.bpel.reader import XmlReader
from mendflow.formats.bpel.vocabulary import SOAP
from mendflow.formats.files import flow_bytes

__all__ = ["IN_PROCESS", "AdaptedProcess", "adapt"]

IN_PROCESS: Final = "mendflow:proxy"
"""The proxy of whichever server runs the process."""


PROXY_FILE: Final = "mendflow-proxy.wsdl"


class AdaptedProcess(msgspec.Struct, frozen=True, kw_only=True):
    """The files to write, the process first; and a report."""

    files: dict[Path, bytes]
    woven: WeavingReport


def adapt(
    path: str | Path,
    out: str | Path,
    proxy: str = IN_PROCESS,
    only: Sequence[str] = (),
    *,
    xpath2_as_1: bool = False,
) -> AdaptedProcess:
    """The process at `path` as it will be at `out`. Raises BadFlow if it is invalid, or cannot be intercepted."""
    path, out = Path(path), Path(out)
    data = flow_bytes(path, str(path))
    world = read_bpel(data, path, xpath2_as_1=xpath2_as_1).xml
    assert world is not None, "a process in BPEL knows its WSDL files"
    given = parse_bpel(data, path)
    root, reader = given.document.root, XmlReader(str(path), given.problems)
    folder, aliases, splice = f"{out.stem}.files", Aliases(reader, world), TextEditor(decode(data), root)
    chosen, left = select_calls(root, InvokeReader(reader, given.definitions, world), only, reader)
    weave(splice, root, chosen, aliases, f"{folder}/{PROXY_FILE}")
    if given.problems:
        raise BadFlow(problems=given.problems)
    beside: dict[Path, bytes] = {}
    if path.parent.resolve() != out.parent.resolve():
        copies = copy_files(splice, root, given.definitions.documents, folder)
        beside = {out.parent / name: data for name, data in copies.items()} | _sheets(out, world.sheets)
    if chosen:
        beside[out.parent / folder / PROXY_FILE] = _proxy_wsdl(proxy, aliases)
    woven = WeavingReport(calls=tuple(call.activity for call in chosen), left=left)
    return AdaptedProcess(files={out: splice.result(), **beside}, woven=woven)


def _proxy_wsdl(address: str, aliases: Aliases) -> bytes:
    root = parse(port_wsdl("proxy"), "proxy.wsdl")
    for each in root.iter(f"{{{SOAP}}}address"):
        each.set("location", address)
    aliases.write(root)
    return serialize_document(root)


def _sheets(out: Path, sheets: dict[str, str]) -> dict[Path, bytes]:
    """Expressions name style sheets by address, so each keeps its address and its relative place."""
    found = {}
    for address, text in sheets.items():
        place = out.parent / address
        if not place.resolve().is_relative_to(out.parent.resolve()):
            raise _bad_target(
                out, f"the style sheet {address} would be outside its folder; write the process where it was"
            )
        if place.exists() and place.read_bytes() != text.encode():
            raise _bad_target(out, f"another style sheet {address} is there already; choose another folder")
        found[place] = text.encode()
    return found


def _bad_target(out: Path, message: str) -> BadFlow:
    return BadFlow(problems=[Problem(file=str(out), message=message)])
