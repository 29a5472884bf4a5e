"""The container of a job: which image its command runs in, and what it asks of the program that runs images.

An image is named as users of Docker and of Apptainer name it: `ubuntu:24.04` or `docker://ubuntu:24.04` for one of a
registry (or one that the pilot's machine has under that name), `/data/tools.sif` for a file of Apptainer,
`library://`, `shub://` and `oras://` for what only Apptainer fetches. A pilot has one runtime, which it tells the
server; a job goes only to pilots whose runtime can run its image."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec

from mendflow.lazy import lazy_pattern

RUNTIMES: Final = ("apptainer", "podman", "docker")
"""What runs images, in the order in which a pilot looks for them."""

NO_CONTAINER: Final = "none"
"""In a job: it runs outside of containers, whatever its flow says."""

SIF_END: Final = ".sif"
REGISTRY: Final = "docker://"
OF_APPTAINER: Final = ("library://", "shub://", "oras://")
IMAGE_CHARS_MAX: Final = 1000
MOUNTS_MAX: Final = 100
MOUNT_MODES: Final = ("ro", "rw")
OF_MACHINE: Final = "localhost/"
"""How podman names images that were built or loaded on the machine; no registry has them."""

DIGEST_MARK: Final = "@sha256:"
LATEST: Final = "latest"

_REFERENCE: Final = lazy_pattern(
    r"(?:[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::[0-9]{1,5})?/)?[a-z0-9]+(?:[._/-]+[a-z0-9]+)*"
    r"(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@sha256:[0-9a-f]{64})?",
    re.IGNORECASE,
)
_IMAGE_ID: Final = lazy_pattern(r"sha256:[0-9a-f]{64}")
_NETWORK: Final = lazy_pattern(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}")


class JobContainer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The image, folders and files of the pilot's machine that are mounted in addition (`SOURCE[:TARGET[:ro]]`),
    options for the runtime as they are, and the network: that of the machine unless given, or `none`, or one that the
    runtime knows. In a flow each text is a template."""

    image: str
    mounts: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    network: str = ""


class Mount(NamedTuple):
    """Where it is on the machine, where the job finds it, and whether it may only be read."""

    source: str
    target: str
    read_only: bool


def runtimes_for(image: str) -> tuple[str, ...]:
    """The runtimes that can run such an image."""
    return RUNTIMES[:1] if is_sif_file(image) or image.startswith(OF_APPTAINER) else RUNTIMES


def is_sif_file(image: str) -> bool:
    return "://" not in image and image.endswith(SIF_END)


def is_of_machine(image: str) -> bool:
    """Whether only the machine itself can have such an image: a file, or one that was built there."""
    return is_sif_file(image) or reference_of(image).startswith(OF_MACHINE)


def reference_of(image: str) -> str:
    """The image as podman and docker name it."""
    return image.removeprefix(REGISTRY)


def is_fixed(image: str) -> bool:
    """Whether the name says which version it is: a digest or a tag other than `latest`, or a file."""
    if is_sif_file(image) or DIGEST_MARK in image or _IMAGE_ID.fullmatch(image):
        return True
    _, _, last = image.rpartition("/")
    _, colon, tag = last.partition(":")
    return bool(colon) and tag != LATEST


def mount_of(text: str) -> Mount:
    """A mount of one text. Call it for texts without a flaw."""
    parts = text.split(":")
    return Mount(parts[0], parts[1] if len(parts) > 1 and parts[1] else parts[0], parts[2:] == ["ro"])


def container_flaws(container: JobContainer) -> Iterator[str]:
    """Everything that is wrong with a container; what has an expression in it is judged when that is evaluated."""
    if not _is_template(container.image) and (flaw := image_flaw(container.image)):
        yield flaw
    if len(container.mounts) > MOUNTS_MAX:
        yield f"a container has {len(container.mounts)} mounts; {MOUNTS_MAX} are the most"
    for text in container.mounts:
        if not _is_template(text) and (flaw := mount_flaw(text)):
            yield flaw
    for text in container.options:
        if "\0" in text or not text:
            yield "an option of a container is empty, or holds a NUL character"
    network = container.network
    if network and not _is_template(network) and not _NETWORK.fullmatch(network):
        yield f"`{network:.80}` is not a network: write `host`, `none`, or the name of one"


def image_flaw(image: str) -> str:
    """What is wrong with the name of an image; empty if nothing is."""
    if not image.strip() or image != image.strip():
        return "an image has a name, such as `ubuntu:24.04`, `docker://ubuntu:24.04` or `/data/tools.sif`"
    if len(image) > IMAGE_CHARS_MAX or not image.isprintable():
        return f"`{image:.80}` is not the name of an image: it is too long, or not printable"
    if is_sif_file(image):
        return "" if image.startswith("/") else f"`{image:.80}` is a file of Apptainer: write its path from / on"
    if image.startswith(OF_APPTAINER):
        return ""
    name = reference_of(image)
    if "://" in name:
        scheme = image.partition("://")[0]
        return f"`{scheme}://` is no place where images are found; there are docker, library, shub and oras"
    if not _REFERENCE.fullmatch(name) and not _IMAGE_ID.fullmatch(name):
        return f"`{image:.80}` is not the name of an image: write it as `quay.io/team/tool:1.2`, or the path of a .sif"
    return ""


def mount_flaw(text: str) -> str:
    """What is wrong with a mount; empty if nothing is."""
    parts = text.split(":")
    if len(parts) > 3 or (len(parts) == 3 and parts[2] not in MOUNT_MODES):
        return f"`{text:.200}` is not a mount: write `/data`, `/data:/in` or `/data:/in:ro`"
    source, target = parts[0], (parts[1] if len(parts) > 1 and parts[1] else parts[0])
    for path in (source, target):
        if not path.startswith("/") or ".." in path.split("/") or "," in path or not path.isprintable():
            return f"`{text:.200}` is not a mount: `{path:.80}` must be a path from / on, without `..` and commas"
    return "" if target.strip("/") else f"`{text:.200}` would hide the image: mount it at a folder of its own"


def _is_template(text: str) -> bool:
    return "${{" in text
