"""The option `container` of jobs and flows in Python: an image, a dict with `image`, or None for no container."""

from collections.abc import Mapping, Sequence
from typing import Any

from mendflow.core.model.containers import NO_CONTAINER, JobContainer, container_flaws
from mendflow.formats.python.handles import template_of
from mendflow.formats.python.problems import bad_flow
from mendflow.formats.spelling import nearest_word

PARTS = JobContainer.__struct_fields__


def container_of(given: Any, owner: object) -> JobContainer | None:
    """The container that a command runs in."""
    if given is None or given == NO_CONTAINER:
        return None
    parts = dict(given) if isinstance(given, Mapping) else {"image": given}
    for name in parts:
        if name not in PARTS:
            raise bad_flow(f"container has no `{name}`; it has {', '.join(PARTS)}", nearest_word(str(name), PARTS))
    if "image" not in parts:
        raise bad_flow('container needs an image: container={"image": "ubuntu:24.04", "mounts": ["/data"]}')
    container = JobContainer(
        image=_text(parts["image"], "image", owner),
        mounts=_texts(parts.get("mounts", ()), "mounts", owner),
        options=_texts(parts.get("options", ()), "options", owner),
        network=_text(parts.get("network", ""), "network", owner),
    )
    if flaw := next(container_flaws(container), ""):
        raise bad_flow(f"container: {flaw}")
    return container


def _texts(given: Any, name: str, owner: object) -> tuple[str, ...]:
    if not isinstance(given, (str, Sequence)):
        raise bad_flow(f"container: {name} is a text or a list of texts, not {given!r:.80}")
    return tuple(_text(each, name, owner) for each in ([given] if isinstance(given, str) else given))


def _text(given: Any, name: str, owner: object) -> str:
    text = template_of(given, owner, f"container {name}")
    if not isinstance(text, str):
        raise bad_flow(f"container: {name} is a text, not {given!r:.80}")
    return text
