"""The container of a job, of `defaults` and of a flow: an image, `none`, or a map."""

from mendflow.core.model.containers import NO_CONTAINER, JobContainer, container_flaws
from mendflow.formats.yaml.builder import StepBuilder
from mendflow.formats.yaml.container_keys import CONTAINER_KEYS
from mendflow.formats.yaml.document import MapNode, ScalarNode, YamlNode
from mendflow.formats.yaml.fields import Fields, fields_of
from mendflow.formats.yaml.job_hints import CONTAINER_HINTS
from mendflow.formats.yaml.reader import YamlReader
from mendflow.formats.yaml.shapes import TextShape

IMAGE = TextShape("an image such as `ubuntu:24.04`, `none`, or a map with `image:`", filled=True)


def container_of(reader: YamlReader, node: YamlNode) -> JobContainer | None:
    """The container; None if there is to be none, or after a problem was recorded."""
    if not isinstance(node, MapNode):
        image = IMAGE.read(reader, node)
        container = JobContainer(image=image) if image and image != NO_CONTAINER else None
    else:
        fields = fields_of(reader, node, CONTAINER_KEYS, "`container`", CONTAINER_HINTS)
        image = fields.get("image") if fields is not None else None
        if fields is None or not image:
            return None
        container = JobContainer(
            image=image,
            mounts=tuple(fields.get("mounts") or ()),
            options=tuple(fields.get("options") or ()),
            network=fields.get("network") or "",
        )
    for flaw in container_flaws(container) if container is not None else ():
        reader.problem(node, flaw)
    return container


def container_of_job(build: StepBuilder, fields: Fields) -> JobContainer | None:
    """The container that a command runs in: its own, or that of all."""
    node = fields.node_of("container")
    found: JobContainer | None = build.defaults.get("container")
    return container_of(build.reader, node) if node is not None else found


def refuse_for_function(build: StepBuilder, fields: Fields) -> None:
    """A function runs in the pilot's own Python: say so, rather than leave the container out."""
    node = fields.node_of("container")
    if node is not None and not (isinstance(node, ScalarNode) and node.value == NO_CONTAINER):
        build.reader.problem(node, f"a container is for commands: {INSTEAD}")
    elif node is None and build.defaults.get("container") is not None:
        place = fields.node_of("python") or fields.node
        build.reader.problem(
            place, f"the flow's container is for commands; say `container: none` at this function, or {INSTEAD}"
        )


INSTEAD = "a function runs in the pilot's own Python; run a script by `run: python3 file.py` with `inputs: file.py`"
