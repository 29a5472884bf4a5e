"""The words of YAWL's rule files: where each type of exception stands, and each part of a rule in both directions."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from mendflow.core.model.flow import Flow
from mendflow.core.model.mending import ExceptionType
from mendflow.core.model.rules import Rule
from mendflow.core.model.values import Value
from mendflow.core.rules.evaluation import data_of
from mendflow.formats.rules.yawl_conditions import to_yawl
from mendflow.formats.rules.yawl_exlets import Step
from mendflow.formats.rules.yawl_exlets import steps_in as steps_of_flow
from mendflow.formats.xml.tree import NAME, Element, element, serialized, tidy

PLACES: Final[dict[ExceptionType, str]] = {
    ExceptionType.CASE_PRE: "constraints/case/pre",
    ExceptionType.CASE_POST: "constraints/case/post",
    ExceptionType.ITEM_PRE: "constraints/item/pre",
    ExceptionType.ITEM_POST: "constraints/item/post",
    ExceptionType.CASE_EXTERNAL: "external/case",
    ExceptionType.ITEM_EXTERNAL: "external/item",
    ExceptionType.SELECTION: "selection",
    ExceptionType.ABORT: "abort",
    ExceptionType.TIMEOUT: "timeout",
    ExceptionType.UNAVAILABLE: "resourceUnavailable",
    ExceptionType.VIOLATION: "violation",
}
LINKS: Final = ("id", "parent", "trueChild", "falseChild")
PARTS: Final = ("condition", "conclusion", "cornerstone", "description")
NOTHING: Final = "null"
WHOLE: Final = re.compile(r"[-+]?\d{1,18}")
FRACTION: Final = re.compile(r"[-+]?(\d+\.\d*|\.\d+)([eE][-+]?\d{1,3})?")
UNSPEAKABLE: Final = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
DATA: Final = "data"


def text_of(node: Element, tag: str) -> str:
    part = node.child(tag)
    return part.text.strip() if part is not None else ""


def number(node: Element, tag: str) -> int | None:
    text = text_of(node, tag)
    return int(text) if WHOLE.fullmatch(text) else None


def names_in(root: Element) -> Iterator[str]:
    """The names of data that the cornerstones of a file show."""
    pending = [root]
    while pending:
        each = pending.pop()
        if each.local == "cornerstone":
            yield from (child.local for child in each.elements())
        else:
            pending.extend(each.elements())


def steps_in(conclusion: Element) -> list[Step]:
    """The steps of a conclusion, which are numbered by an attribute or, in older files, by their tags. A plain name is
    that of a worklet."""
    found = []
    for place, step in enumerate(conclusion.elements()):
        given = step.attributes.get("index", step.local.removeprefix("_"))
        order = int(given) if WHOLE.fullmatch(given) else place
        found.append((order, place, Step(text_of(step, "action"), text_of(step, "target"))))
    if found:
        return [step for _, _, step in sorted(found)]
    text = conclusion.text.strip()
    return [Step("select", text)] if text and text != NOTHING else []


def steps_in_rule(rule: Rule, type: ExceptionType, exlets: Mapping[str, Flow]) -> list[Step] | None:
    """The steps that a rule concludes, or None where they cannot be said."""
    if not rule.exlet:
        return []
    if type is ExceptionType.SELECTION:
        return [Step("select", rule.exlet)]
    return steps_of_flow(exlets[rule.exlet]) if rule.exlet in exlets else None


def cornerstone_in(part: Element) -> dict[str, Value] | None:
    data = {child.local: value_in(child) for child in part.elements()}
    return {DATA: data} if data else None


def value_in(part: Element) -> Value:
    """The value of an element, of the kind that its text looks like; elements in it are a map, several of one name a
    list."""
    inner: dict[str, Value] = {}
    for child in part.elements():
        value = value_in(child)
        if child.local in inner:
            others = inner[child.local]
            inner[child.local] = [*(others if isinstance(others, list) else [others]), value]
        else:
            inner[child.local] = value
    if inner:
        return inner
    text = part.text.strip()
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    if WHOLE.fullmatch(text):
        return int(text)
    return float(text) if FRACTION.fullmatch(text) else text


def part(tag: str, rule: Rule, steps: list[Step] | None) -> str:
    """A part of a rule as it is written where nothing was kept."""
    match tag:
        case "condition":
            return serialized(tidy(element(tag, to_yawl(rule.condition) or "False")))
        case "conclusion":
            return serialized(conclusion(steps or []))
        case "cornerstone":
            return serialized(cornerstone(rule.cornerstone))
    return serialized(tidy(element(tag, speakable(rule.note))))


def conclusion(steps: list[Step]) -> Element:
    if not steps:
        return element("conclusion", NOTHING)
    return element(
        "conclusion",
        *(
            element("step", element("action", step.action), element("target", step.target), index=str(count))
            for count, step in enumerate(steps, 1)
        ),
    )


def cornerstone(context: Mapping[str, Value] | None) -> Element:
    """The data of a case; whatever else a context has, they have no place for."""
    given = (context or {}).get(DATA, data_of(context or {}))
    data = given if isinstance(given, dict) else {}
    return element("cornerstone", *(valued(name, value) for name, value in data.items() if NAME.fullmatch(name)))


def valued(name: str, value: Value) -> Element:
    if isinstance(value, dict):
        return element(name, *(valued(key, part) for key, part in value.items() if NAME.fullmatch(key)))
    if isinstance(value, list):
        return element(name, ", ".join(plain(part) for part in value))
    return element(name, plain(value))


def plain(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else speakable(str(value)).strip()


def speakable(text: str) -> str:
    """The text without what XML cannot say."""
    return UNSPEAKABLE.sub("", text)
