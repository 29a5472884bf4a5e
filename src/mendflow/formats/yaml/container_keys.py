"""The keys of a job's container."""

from typing import Final

from mendflow.formats.yaml.fields import Key, Table
from mendflow.formats.yaml.shapes import ListOf, TextShape

CONTAINER_KEYS: Final[Table] = {
    "image": Key(
        TextShape("an image, such as `ubuntu:24.04`,", filled=True),
        "The image: of a registry, or one that the pilot's machine has, or the path of a .sif file.",
        required=True,
    ),
    "mounts": Key(
        ListOf(TextShape("a path, or `/data:/in:ro`"), single=True, expected="a path, or a list of paths"),
        "Folders and files of the pilot's machine that the job sees in addition: `/data`, `/data:/in` or "
        "`/data:/in:ro`, which it may only read.",
    ),
    "options": Key(
        ListOf(TextShape("an option of the runtime"), single=True, expected="an option, or a list of options"),
        "Options for apptainer, podman or docker, as they are; the pilot must allow them.",
    ),
    "network": Key(
        TextShape("`host`, `none`, or the name of a network"), "The network; that of the machine unless given."
    ),
}
