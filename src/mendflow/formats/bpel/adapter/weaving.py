"""Replaces each invoke of a process by an interceptor, and leaves everything else unchanged.

It edits the text of the document, not the flow, so that comments, prefixes, extensions and white space stay. The scope
that replaces an invoke takes over its links and its join condition, and, since an invoke with handlers means a scope
with those handlers around a plain invoke, its handlers and the name that compensations use."""

from collections import Counter
from collections.abc import Collection, Sequence
from itertools import islice
from typing import Final

import msgspec
from lxml import etree

from mendflow.core.xml import ParsedElement
from mendflow.formats.bpel.adapter.aliases import Aliases
from mendflow.formats.bpel.adapter.calls import InterceptedCall, InvokeReader
from mendflow.formats.bpel.adapter.interceptor import PROXY, Interceptor, declared_prefixes
from mendflow.formats.bpel.adapter.text_edits import TextEditor
from mendflow.formats.bpel.adapter.unique_names import UniqueNames
from mendflow.formats.bpel.names import activities_in, local_name, needs_scope, own_elements
from mendflow.formats.bpel.ports import PORTS
from mendflow.formats.bpel.reader import XmlReader
from mendflow.formats.bpel.vocabulary import BPEL, WSDL, XPATH_1_0
from mendflow.formats.spelling import nearest_word

STANDARD: Final = frozenset(f"{{{BPEL}}}{name}" for name in ("documentation", "targets", "sources"))
SLICE: Final = "mendflow-slice"
OWN_ADDRESS: Final = "mendflow:"
NAMES_MAX: Final = 20


class WeavingReport(msgspec.Struct, frozen=True, kw_only=True):
    """Which invokes were intercepted; and which were left as they were, each with the reason."""

    calls: tuple[str, ...]
    left: tuple[tuple[str, str], ...]


def select_calls(
    process: ParsedElement, calls: InvokeReader, only: Sequence[str], reader: XmlReader
) -> tuple[list[InterceptedCall], tuple[tuple[str, str], ...]]:
    """The invokes to intercept, in the order of the document; and the others, each with the reason."""
    invokes = [each for each in activities_in(process) if local_name(each) == "invoke"]
    named = dict.fromkeys(filter(None, (each.get("name", "").strip() for each in invokes)))
    for name in only:
        if name not in named:
            reader.problem(process, f"there is no invoke named {name}; {_name_list(named)}", nearest_word(name, named))
    chosen, left = [], []
    for call in map(calls.of, invokes):
        if reason := _reason_to_leave(call, only):
            left.append((call.activity, reason))
        else:
            chosen.append(call)
    if chosen and any(each.get("namespace", "").strip() == PROXY for each in own_elements(process, "import")):
        reader.problem(process, "it has interceptors already; adapt the process that it was made from")
    return chosen, tuple(left)


def _name_list(names: Collection[str]) -> str:
    """Which there are, as far as anybody reads it."""
    if not names:
        return "no invoke of this process has a name, and --only goes by names"
    more = len(names) - NAMES_MAX
    return f"there are {', '.join(islice(names, NAMES_MAX))}" + (f" and {more} more" if more > 0 else "")


def _reason_to_leave(call: InterceptedCall, only: Sequence[str]) -> str:
    name = call.at.get("name", "").strip()
    if call.port_type.startswith(f"{{{PROXY}}}"):
        return "it calls the proxy already"
    if only and name not in only:
        return "not chosen"
    at_home = call.address.startswith(OWN_ADDRESS) and call.port_type.startswith(f"{{{PORTS['jobs']}}}")
    return "what it calls is in the server itself, and mended there" if at_home and not only else ""


def weave(
    splice: TextEditor, process: ParsedElement, chosen: Sequence[InterceptedCall], aliases: Aliases, location: str
) -> None:
    """Change the text. `location` is where the process will find the proxy's WSDL."""
    for call in chosen:
        aliases.add(call)
    if not chosen:
        return
    _import(splice, process, location)
    fresh, language = UniqueNames(process), process.get("expressionLanguage", "").strip() or XPATH_1_0
    names = Counter(each.get("name", "").strip() for each in activities_in(process) if _is_scope(each))
    for number, call in reversed(list(enumerate(chosen, 1))):  # inner ones first: an invoke's handlers may have invokes
        scope = Interceptor(call, fresh, language, number).scope()
        name = call.at.get("name", "").strip()
        # Engines tell scopes apart by their names; only compensation needs the invoke's own.
        kept = name and (names[name] == 1 or any(own_elements(call.at, "compensationHandler")))
        _replace(splice, call, scope, name if kept else f"{scope.get('name')}.handlers")


def _is_scope(activity: ParsedElement) -> bool:
    return local_name(activity) == "scope" or (local_name(activity) == "invoke" and needs_scope(activity))


def _import(splice: TextEditor, process: ParsedElement, location: str) -> None:
    """The proxy's WSDL, after the imports that are there."""
    before = list(own_elements(process, "import")) or list(own_elements(process, "extensions", "documentation"))
    tag = f"{process.prefix}:import" if process.prefix else "import"
    made = f'<{tag} namespace="{PROXY}" location="{location}" importType="{WSDL}"/>'
    if before:
        splice.put_after(before[-1], f"\n{splice.indent_of(before[-1])}{made}")
    else:
        splice.put_inside(process, f"\n    {made}")


def _replace(splice: TextEditor, call: InterceptedCall, scope: ParsedElement, outer_name: str) -> None:
    invoke = call.at
    indent = splice.indent_of(invoke)
    parent = invoke.getparent()
    assert parent is not None, "an invoke is never a whole process"
    outer_indent = splice.indent_of(parent)
    step = (
        indent[len(outer_indent) :] if indent.startswith(outer_indent) and len(indent) > len(outer_indent) else "    "
    )
    outer = _with_handlers(invoke, scope, outer_name) if needs_scope(invoke) else scope
    _keep_standard_elements(invoke, outer)
    etree.indent(outer, space=step)
    text = etree.tostring(outer, encoding="unicode").replace("\n", f"\n{indent}")
    for number, child in enumerate(invoke):
        if isinstance(child.tag, str):
            text = text.replace(f"<?{SLICE} {number}?>", splice.text_of(child))
    splice.replace(invoke, _without_known_prefixes(text, parent))


def _with_handlers(invoke: ParsedElement, scope: ParsedElement, name: str) -> ParsedElement:
    """A scope with the handlers of the invoke, and the interceptor in it."""
    outer = etree.Element(f"{{{BPEL}}}scope", {"name": name}, nsmap=declared_prefixes(invoke))
    if caught := _slices(invoke, "catch", "catchAll"):
        etree.SubElement(outer, f"{{{BPEL}}}faultHandlers").extend(caught)
    outer.extend(_slices(invoke, "compensationHandler"))
    outer.append(scope)
    return outer


def _slices(invoke: ParsedElement, *names: str) -> list[ParsedElement]:
    """Marks for children of an invoke, where their texts will stand as they are."""
    wanted = {f"{{{BPEL}}}{name}" for name in names}
    return [_slice(number) for number, child in enumerate(invoke) if child.tag in wanted]


def _slice(number: int) -> ParsedElement:
    return etree.ProcessingInstruction(SLICE, str(number))


def _keep_standard_elements(invoke: ParsedElement, outer: ParsedElement) -> None:
    """What is said of the activity itself: links, documentation, and whatever others have added to it."""
    for name in ("suppressJoinFailure", *(name for name in map(str, invoke.attrib) if name.startswith("{"))):
        if (value := invoke.get(name)) is not None:
            outer.set(name, value)
    for number, child in reversed(list(enumerate(invoke))):
        if not isinstance(child.tag, str):
            outer.insert(0, etree.Comment(child.text))
        elif child.tag in STANDARD or not child.tag.startswith(f"{{{BPEL}}}"):
            outer.insert(0, _slice(number))


def _without_known_prefixes(text: str, parent: ParsedElement) -> str:
    """The text without what its first tag says of BPEL's own prefix, where that is said around it already."""
    head, end, rest = text.partition(">")
    for prefix in (prefix for prefix, uri in parent.nsmap.items() if uri == BPEL):
        word = f"xmlns:{prefix}" if prefix else "xmlns"
        head = head.replace(f' {word}="{BPEL}"', "")
    return head + end + rest
