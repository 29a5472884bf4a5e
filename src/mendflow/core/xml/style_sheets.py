"""XSLT 1.0 without file or network access.

Imports of a sheet are rewritten before libxslt sees it, to refer to sheets that come with the flow. While it runs, all
access to files and the network is denied. Time and memory cannot be bounded here: call this in a process that may be
killed."""

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any, Final

from mendflow.core.model.errors import BadFlow
from mendflow.core.model.values import Value
from mendflow.core.model.xml import element_text, element_value
from mendflow.core.xml.library import ParsedElement, etree
from mendflow.core.xml.parser import XmlBounds, parse
from mendflow.core.xml.resolver import parse_with_resolver, resolve_path

XSL: Final = "http://www.w3.org/1999/XSL/Transform"
GIVEN: Final = "urn:mendflow:given"
MESSAGE_CHARS_MAX: Final = 500
BOUNDS: Final = XmlBounds(depth=200)

Params = Sequence[tuple[str, Value]]


class StyleSheetNotFound(Exception):
    """There is no sheet of that address."""


class StyleSheetFailed(Exception):
    """The sheet cannot be used, or gives up; the text says why."""


def transform(sheets: Mapping[str, str], sheet: str, source: str, params: Params) -> Value:
    """What the sheet makes of the source: an element's value, or a text where it makes no element."""
    if sheet not in sheets:
        raise StyleSheetNotFound(sheet)
    try:
        trees = _reachable_sheets(sheets, sheet)
        document = parse(source, "the source", BOUNDS)
        given = {name: parse(text, name, BOUNDS) for name, value in params if (text := element_text(value)) is not None}
    except BadFlow as refusal:
        raise StyleSheetFailed(refusal.message[:MESSAGE_CHARS_MAX]) from refusal
    plain = {name: _plain(value) for name, value in params if name not in given}
    _put_into(trees[sheet], given)
    try:
        style = etree.XSLT(
            _whole(trees, sheet),
            access_control=etree.XSLTAccessControl.DENY_ALL,
            extensions=_parameter_extensions(given),
        )
        return _value(style(document, profile_run=False, **plain))
    except (etree.LxmlError, ValueError) as error:
        raise StyleSheetFailed(_error_message(error)) from error


def import_elements(root: ParsedElement) -> Iterator[ParsedElement]:
    """Where a sheet draws in another one."""
    return root.iterchildren(f"{{{XSL}}}import", f"{{{XSL}}}include")


def _reachable_sheets(sheets: Mapping[str, str], sheet: str) -> dict[str, ParsedElement]:
    """The sheet and what it draws in, by address."""
    trees: dict[str, ParsedElement] = {}
    wanted = [sheet]
    while wanted:
        address = wanted.pop()
        if address in trees:
            continue
        trees[address] = parse(sheets[address], address, BOUNDS)
        for node in import_elements(trees[address]):
            found = _find_sheet(address, node.get("href") or "", sheets)
            if found is None:
                raise StyleSheetFailed(f"{address} draws in {node.get('href')}, and the flow has no such sheet")
            wanted.append(found)
    return trees


def _find_sheet(address: str, place: str, sheets: Mapping[str, object]) -> str | None:
    return next((name for name in (resolve_path(address, place), place) if name in sheets), None)


def _whole(trees: Mapping[str, ParsedElement], sheet: str) -> ParsedElement:
    numbers = {address: f"mem:{at}" for at, address in enumerate(trees)}
    texts = {}
    for address, root in trees.items():
        changed = deepcopy(root)
        for node in import_elements(changed):
            node.set("href", numbers[_find_sheet(address, node.get("href") or "", trees) or sheet])
        texts[numbers[address]] = etree.tostring(changed)
    return parse_with_resolver(texts, numbers[sheet])


def _plain(value: Value) -> Any:
    """A value as libxslt takes a parameter: an expression."""
    if isinstance(value, bool):
        return "true()" if value else "false()"
    if isinstance(value, int | float):
        return repr(value)
    return etree.XSLT.strparam(value if isinstance(value, str) else "")


def _put_into(root: ParsedElement, given: Mapping[str, ParsedElement]) -> None:
    """Elements cannot be given as expressions: the parameter of the sheet asks for them by its name."""
    for node in root.iterchildren(f"{{{XSL}}}param"):
        if (name := node.get("name") or "") in given:
            asking = etree.SubElement(root, node.tag, {"name": name}, nsmap={"given": GIVEN})
            asking.set("select", f"given:element('{name}')")
            root.replace(node, asking)


def _parameter_extensions(given: Mapping[str, ParsedElement]) -> dict[tuple[str, str], Any]:
    return {(GIVEN, "element"): lambda _, name: [given[name]]}


def _value(result: Any) -> Value:
    root = result.getroot()
    if root is None:
        return str(result)
    resolve_path = [*root.itersiblings("*"), *root.itersiblings("*", preceding=True)]
    if resolve_path:
        raise StyleSheetFailed(
            f"the style sheet makes {1 + len(resolve_path)} elements side by side; it must be one with all in it"
        )
    return element_value(etree.tostring(root, encoding="unicode", with_tail=False))


def _error_message(error: Exception) -> str:
    messages = [entry.message for entry in error.error_log] if isinstance(error, etree.LxmlError) else []
    return "; ".join(dict.fromkeys([*messages, str(error)]))[:MESSAGE_CHARS_MAX]
