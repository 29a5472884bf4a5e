"""Traces as command arguments: how they are scaled, and the files that existed before they started.

Those files are generated here one by one and uploaded; their content follows from their names in the flow, so anyone
with the flow can generate them."""

import asyncio
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from mendflow.client import Client
from mendflow.core.engine.plan import walk_activities
from mendflow.core.model.flow import Flow, JobActivity
from mendflow.core.model.values import FileRef, file_of
from mendflow.formats.wfformat import TRACE, Scale
from mendflow.formats.wfformat.flows import SIZE_SCALE
from mendflow.formats.wfformat.program import content_of, digest_of
from mendflow.pilot.environment import usable_cpus
from mendflow.pilot.slot.memory import machine_bytes

TimeScale = Annotated[
    float | None,
    typer.Option("--scale", metavar="FACTOR", help="For a trace: multiply its times by this.", show_default=False),
]
SizeScale = Annotated[
    float | None,
    typer.Option(
        "--size-scale",
        metavar="FACTOR",
        help=f"For a trace: multiply its file sizes by this; default {SIZE_SCALE}.",
        show_default=False,
    ),
]


def scale_for(path: str, time: float | None, size: float | None, slots: int) -> Scale | None:
    """How to scale the flow of a file that runs on this machine; None if it is not a trace and no scale is given."""
    if time is None and size is None and not path.endswith(TRACE):
        return None
    return scale_here(1.0 if time is None else time, SIZE_SCALE if size is None else size, slots)


def scale_here(time: float, size: float, slots: int) -> Scale:
    """Scale by these factors, and cap requests at what this machine has."""
    return Scale(time=time, size=size, cores_most=float(max(slots, usable_cpus())), memory_bytes_most=machine_bytes())


async def upload_generated(client: Client, flow: Flow) -> None:
    """Generate the files that a trace's first tasks read, and upload those that the server lacks."""
    with tempfile.TemporaryDirectory(prefix="mendflow-trace-") as folder:
        for ref in generated_files(flow):
            if not await client.has(ref.sha256):
                made = await asyncio.to_thread(_generate, Path(folder, "file"), ref)
                await client.upload(made, ref.name)


def _generate(path: Path, ref: FileRef) -> Path:
    with path.open("wb") as target:
        target.writelines(content_of(ref.name, ref.bytes))
    return path


def generated_files(flow: Flow) -> list[FileRef]:
    """The flow's files by digest, if their content is what is generated under that name."""
    refs = (
        file_of(source)
        for each in walk_activities(flow)
        if isinstance(each, JobActivity)
        for source in each.inputs.values()
    )
    once = {ref.sha256: ref for ref in refs if ref is not None and not ref.logical}
    return [ref for ref in once.values() if digest_of(ref.name, ref.bytes) == ref.sha256]
