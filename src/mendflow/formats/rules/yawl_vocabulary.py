"""The words of YAWL's rule files: types of exceptions, and the parts of a rule in both directions."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from mendflow.core.model.flow import Flow
from mendflow.core.model.repair import ExceptionType
from mendflow.core.model.rules import Rule
from mendflow.core.model.values import Value
from mendflow.core.rules.evaluation import data_of
from mendflow.formats.rules.yawl_conditions import to_yawl
from mendflow.formats.rules.yawl_exlets import YawlStep
from mendflow.formats.rules.yawl_exlets import steps_in as steps_of_flow
from mendflow.formats.xml.markup import NAME, MarkupElement, element, serialize, strip_blanks

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
NULL_TEXT: Final = "null"
WHOLE: Final = re.compile(r"[-+]?\d{1,18}")
FRACTION: Final = re.compile(r"[-+]?(\d+\.\d*|\.\d+)([eE][-+]?\d{1,3})?")
NOT_XML_CHARS: Final = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
DATA: Final = "data"
NO_TYPES: Final[Mapping[str, str]] = {}


def text_of(node: MarkupElement, tag: str) -> str:
    part = node.child(tag)
    return part.text.strip() if part is not None else ""


def number(node: MarkupElement, tag: str) -> int | None:
    text = text_of(node, tag)
    return int(text) if WHOLE.fullmatch(text) else None


def names_in(root: MarkupElement) -> Iterator[str]:
    """The names of data that the cornerstones of a file show."""
    pending = [root]
    while pending:
        each = pending.pop()
        if each.local == "cornerstone":
            yield from (child.local for child in each.elements())
        else:
            pending.extend(each.elements())


def steps_in(conclusion: MarkupElement) -> list[YawlStep]:
    """The steps of a conclusion, which are numbered by an attribute or, in older files, by their tags. A plain name is
    that of a worklet."""
    found = []
    for place, step in enumerate(conclusion.elements()):
        given = step.attributes.get("index", step.local.removeprefix("_"))
        order = int(given) if WHOLE.fullmatch(given) else place
        found.append((order, place, YawlStep(text_of(step, "action"), text_of(step, "target"))))
    if found:
        return [step for _, _, step in sorted(found)]
    text = conclusion.text.strip()
    return [YawlStep("select", text)] if text and text != NULL_TEXT else []


def steps_in_rule(rule: Rule, type: ExceptionType, exlets: Mapping[str, Flow]) -> list[YawlStep] | None:
    """The steps that a rule concludes, or None where they cannot be said."""
    if not rule.exlet:
        return []
    if type is ExceptionType.SELECTION:
        return [YawlStep("select", rule.exlet)]
    return steps_of_flow(exlets[rule.exlet]) if rule.exlet in exlets else None


def cornerstone_in(part: MarkupElement, types: Mapping[str, str] = NO_TYPES) -> dict[str, Value] | None:
    """The data of a case. `types` are those that its flow declares, by name."""
    data = {child.local: value_in(child, types.get(child.local, "")) for child in part.elements()}
    return {DATA: data} if data else None


def value_in(part: MarkupElement, type: str = "") -> Value:
    """The value of an element, of the type that is declared for it, else of the kind that its text looks like; elements
    in it are a map, several of one name a list."""
    if type == "string" and not any(part.elements()):
        return part.text.strip()
    found = guessed_value(part)
    if type == "list" and not isinstance(found, list):
        inner = list(found.values()) if isinstance(found, dict) else [found] if found != "" else []
        return inner[0] if len(inner) == 1 and isinstance(inner[0], list) else inner
    return found


def guessed_value(part: MarkupElement) -> Value:
    """The value of an element, of the kind that its text looks like."""
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


def part(tag: str, rule: Rule, steps: list[YawlStep] | None) -> str:
    """A part of a rule as it is written where nothing was kept."""
    match tag:
        case "condition":
            return serialize(strip_blanks(element(tag, to_yawl(rule.condition) or "False")))
        case "conclusion":
            return serialize(conclusion(steps or []))
        case "cornerstone":
            return serialize(cornerstone(rule.cornerstone))
    return serialize(strip_blanks(element(tag, xml_text(rule.note))))


def conclusion(steps: list[YawlStep]) -> MarkupElement:
    if not steps:
        return element("conclusion", NULL_TEXT)
    return element(
        "conclusion",
        *(
            element("step", element("action", step.action), element("target", step.target), index=str(count))
            for count, step in enumerate(steps, 1)
        ),
    )


def cornerstone(context: Mapping[str, Value] | None) -> MarkupElement:
    """The data of a case; whatever else a context has, they have no place for."""
    given = (context or {}).get(DATA, data_of(context or {}))
    data = given if isinstance(given, dict) else {}
    return element("cornerstone", *(value_element(name, value) for name, value in data.items() if NAME.fullmatch(name)))


def value_element(name: str, value: Value) -> MarkupElement:
    if isinstance(value, dict):
        return element(name, *(value_element(key, part) for key, part in value.items() if NAME.fullmatch(key)))
    if isinstance(value, list):
        return element(name, ", ".join(plain_text(part) for part in value))
    return element(name, plain_text(value))


def plain_text(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else xml_text(str(value)).strip()


def xml_text(text: str) -> str:
    """The text without what XML cannot say."""
    return NOT_XML_CHARS.sub("", text)
