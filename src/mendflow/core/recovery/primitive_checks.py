"""Validates the primitives of an exlet: which settings each may have, and their types.

Files are checked when they are read, and so are exlets that come as data: errors that would otherwise occur in the
middle of a repair are refused when the exlet is added. Expressions are checked when they are evaluated."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from mendflow.core.model.expr import Expr
from mendflow.core.model.flow import DURATION_MS_MAX, PrimitiveStep
from mendflow.core.model.repair import Primitive
from mendflow.core.model.values import Value
from mendflow.core.recovery.resubmission import SETTABLE

WHOLE_CASES: Final = frozenset({Primitive.SUSPEND, Primitive.CONTINUE, Primitive.REMOVE, Primitive.WRITE})
"""Primitives whose target can be more than an item."""

LEVEL_MAX: Final = 1_000
RESOURCE_NAMES: Final = SETTABLE
"""What an exlet may change; which runtimes a job can use follows from its container."""

_CHANGES: Final = frozenset({"resources", "env", "container", "avoid_hosts", "sources", "domain", "wait_ms"})
SETTINGS: Final[dict[Primitive, frozenset[str]]] = {
    Primitive.RESTART: frozenset({"with"}),
    Primitive.COMPLETE: frozenset({"outputs"}),
    Primitive.FAIL: frozenset({"fault", "message", "throw"}),
    Primitive.WRITE: frozenset({"values"}),
    Primitive.RESTAGE: _CHANGES | {"way", "parameters", "publish_to", "publish_on"},
    Primitive.RESUBMIT: _CHANGES,
    Primitive.REPOLL: frozenset({"wait_ms"}),
    Primitive.REREGISTER: frozenset({"wait_ms"}),
    Primitive.RETRY_LATER: _CHANGES | {"level", "mode"},
    Primitive.NOTIFY: frozenset({"message", "to", "data"}),
}
"""The settings of each primitive; the others have none."""


def _number(least: int, most: int) -> Callable[[object], bool]:
    def fits(value: object) -> bool:
        return isinstance(value, (int, float)) and not isinstance(value, bool) and least <= value <= most

    return fits


def _map(value: object) -> bool:
    return isinstance(value, dict)


def _text(value: object) -> bool:
    return isinstance(value, str)


_LEVEL: Final = _number(0, LEVEL_MAX)
_KINDS: Final[dict[str, tuple[Callable[[object], bool], str]]] = {
    "level": (
        lambda value: isinstance(value, int) and _LEVEL(value),
        "the number of a level from 1 on, or 0 for the next",
    ),
    "mode": (lambda value: value in ("recoverable", "express"), "`recoverable` or `express`"),
    "wait_ms": (_number(0, DURATION_MS_MAX), "a number of milliseconds from 0 on"),
    "way": (lambda value: value in ("same", "parameters", "replica", "target"), "same, parameters, replica or target"),
    "throw": (lambda value: isinstance(value, bool), "true or false"),
    "resources": (_map, "a map of resources"),
    "env": (_map, "a map of variables"),
    "sources": (_map, "a map from inputs, by their paths, to other files: a path, lfn:/NAME or a URL"),
    "publish_to": (lambda value: isinstance(value, (str, dict)), "a URL, or a map from outputs to URLs"),
    "publish_on": (_text, "the name of a storage element"),
    "avoid_hosts": (lambda value: isinstance(value, (str, list, tuple)), "a list of hosts"),
    "domain": (_text, "the name of a domain"),
    "container": (_text, "an image, or `none`"),
    "values": (_map, "a map of values"),
    "with": (_map, "a map of values"),
    "parameters": (_map, "a map of parameters"),
    "fault": (_text, "the name of a fault"),
    "message": (_text, "a text"),
    "to": (_text, "a text"),
}


DATA_KINDS: Final[dict[str, dict[str, Value]]] = {
    "level": {"type": "integer", "minimum": 0, "maximum": LEVEL_MAX, "description": _KINDS["level"][1]},
    "mode": {"enum": ["recoverable", "express"]},
    "wait_ms": {"type": "number", "minimum": 0, "maximum": DURATION_MS_MAX, "description": _KINDS["wait_ms"][1]},
    "way": {"enum": ["same", "parameters", "replica", "target"]},
    "throw": {"type": "boolean"},
    "publish_to": {"type": ["string", "object"], "description": _KINDS["publish_to"][1]},
    "avoid_hosts": {"type": ["string", "array"], "description": _KINDS["avoid_hosts"][1]},
    **{
        name: {"type": kind, "description": _KINDS[name][1]}
        for kind, names in {
            "object": ("env", "sources", "values", "with", "parameters"),
            "string": ("publish_on", "domain", "container", "fault", "message", "to"),
        }.items()
        for name in names
    },
}
"""The same as JSON Schema."""


RESOURCE_KINDS: Final[dict[str, dict[str, Value]]] = {
    "site": {"type": "string", "description": "the name of a site"},
    "hosts": {"type": "array", "description": "a list of hosts"},
    "system": {"type": "string", "description": "an operating system, such as linux"},
    "machine": {"type": "string", "description": "a kind of processor, such as x86_64"},
}
"""Of the resources that are no numbers."""
_IS_KIND: Final[dict[Value, Callable[[object], bool]]] = {
    "string": lambda value: isinstance(value, str),
    "array": lambda value: isinstance(value, (list, tuple)),
}


def step_problems(steps: Iterable[PrimitiveStep]) -> Iterator[str]:
    """Everything that is wrong with the primitives of an exlet, with the step."""
    for step in steps:
        yield from (f"step {step.name}: {problem}" for problem in _problems(step))


def _problems(step: PrimitiveStep) -> Iterator[str]:
    if step.target != "item" and step.do not in WHOLE_CASES:
        yield f"{step.do.value} is for items, not for {step.target}"
    allowed = SETTINGS.get(step.do, frozenset())
    for name in step.settings.keys() - allowed:
        known = f"it takes {', '.join(sorted(allowed))}" if allowed else "it takes no settings"
        yield f"{step.do.value} knows no `{name:.80}`; {known}"
    for name in sorted(step.settings.keys() & allowed):
        yield from _value_problems(name, step.settings[name])
    if step.do is Primitive.WRITE and "values" not in step.settings:
        yield "write needs `values`, a map of what is written"


def _value_problems(name: str, value: object) -> Iterator[str]:
    if value is None or _is_computed(value):
        return
    fits, wanted = _KINDS.get(name, (lambda _: True, ""))
    if not fits(value):
        yield f"`{name}` must be {wanted}, not {value!r:.80}"
    elif name == "resources" and isinstance(value, dict):
        yield from _resource_problems(value)


def _resource_problems(asked: Mapping[str, object]) -> Iterator[str]:
    for name, value in asked.items():
        if name not in RESOURCE_NAMES:
            yield f"there is no resource `{name!s:.80}`; there are {', '.join(RESOURCE_NAMES)}"
        elif name == "avoid_hosts" or value is None or _is_computed(value):
            continue
        elif kind := RESOURCE_KINDS.get(name):
            if not _IS_KIND[kind["type"]](value):
                yield f"`resources.{name}` must be {kind['description']}, not {value!r:.80}"
        elif not _number(0, 2**53)(value):
            yield f"`resources.{name}` must be a number from 0 on, not {value!r:.80}"


def _is_computed(value: object) -> bool:
    """Whether it is an expression."""
    return isinstance(value, Expr) or (isinstance(value, str) and "${{" in value)
