"""There and back: a flow as a process, read again."""

import re
from pathlib import Path

import msgspec

from mendflow.core.model.flow import Flow
from mendflow.formats.bpel import load_bpel
from mendflow.formats.bpel.writing import write_bpel

LOCATION = re.compile(r'schemaLocation="[^"]*"')


def read_again(flow: Flow, folder: Path) -> Flow:
    files = write_bpel(flow)
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return load_bpel(folder / next(iter(files)))


def sense(flow: Flow) -> Flow:
    """The flow without what no process depends on: where schemas stood, and in which order files said things. Of ports
    of one port type the first is called, so their order stays."""
    world = flow.xml
    assert world is not None
    schemas = (
        msgspec.structs.replace(each, location="", text=LOCATION.sub("", each.text).strip()) for each in world.schemas
    )
    plain = msgspec.structs.replace(
        world,
        schemas=tuple(sorted(schemas, key=repr)),
        aliases=tuple(sorted(world.aliases, key=repr)),
        ports=tuple(sorted(world.ports, key=lambda port: port.port_type)),
    )
    return msgspec.structs.replace(flow, xml=plain)


def check_round(flow: Flow, folder: Path) -> None:
    again = read_again(flow, folder)
    assert sense(again) == sense(flow)
    assert write_bpel(again) == write_bpel(flow), "written twice, it is the same text"
