"""Takes a document apart completely: each part is understood, or refused with its name and line."""

import math
import posixpath
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from lxml import etree

from mendflow.core.model.errors import BadFlow, Problem
from mendflow.core.xml import ParsedElement
from mendflow.formats.jsdl.vocabulary import GRIDSAM_MPI, PREFIXES, SCHEMA_INSTANCE, XML
from mendflow.formats.spelling import nearest_word

AMOUNT_MAX: Final = 2**53
SHOWN_CHARS: Final = 80
TRUTHS: Final = {"true": True, "1": True, "false": False, "0": False}


class JsdlReader:
    """`folder` is where the document stands, or would stand; None: nowhere, as it came over a line."""

    def __init__(self, file: str, folder: Path | None) -> None:
        self.file = file
        self.folder = folder
        self.problems: list[Problem] = []

    def problem(self, at: ParsedElement, message: str, suggestion: str = "") -> None:
        problem = Problem(file=self.file, line=at.sourceline or 0, message=message, suggestion=suggestion)
        self.problems.append(problem)

    def end(self) -> None:
        """Raise if anything was wrong."""
        if self.problems:
            in_order: list[Problem] = sorted(self.problems, key=lambda each: each.line)
            raise BadFlow(problems=in_order)

    # elements

    def parts(
        self,
        at: ParsedElement,
        known: Mapping[str, int],
        refused: Mapping[str, str] | None = None,
        namespaces: Iterable[str] = (),
    ) -> dict[str, list[ParsedElement]]:
        """The elements in an element by their names. `known` says how often each may stand, `refused` why some are not
        taken. They are of the element's own namespace, or of one of those that are named."""
        found: dict[str, list[ParsedElement]] = {}
        own = {namespace(at), *namespaces}
        if stray := "".join([at.text or "", *(child.tail or "" for child in at)]).strip():
            self.problem(at, f"<{local(at)}> holds elements and no text; it has {abbreviate(stray)}")
        for child in elements(at):
            name = local(child)
            if namespace(child) not in own:
                self._stranger(child, at)
            elif refused and name in refused:
                self.problem(child, f"<{name}> cannot be honoured: {refused[name]}")
            elif name not in known:
                self.problem(child, f"<{local(at)}> has no <{name}>", nearest_word(name, known))
            elif len(found.setdefault(name, [])) >= known[name]:
                self.problem(child, f"<{name}> may stand only once in <{local(at)}>")
            else:
                found[name].append(child)
        return found

    def _stranger(self, child: ParsedElement, at: ParsedElement) -> None:
        space = namespace(child)
        if space in PREFIXES or space == GRIDSAM_MPI:
            self.problem(child, f"<{local(child)}> of {PREFIXES.get(space, space)} has no place in <{local(at)}>")
            return
        whose = f"of {space!r:.100}" if space else "of no namespace"
        self.problem(
            child,
            f"<{local(child)}> {whose} is an extension that nobody here knows: it cannot be honoured; take it out",
        )

    def attributes(self, at: ParsedElement, *known: str) -> dict[str, str]:
        """Its attributes; one that is not known is refused."""
        found = {}
        for name, value in at.items():
            part = etree.QName(str(name))
            if part.namespace in (SCHEMA_INSTANCE, XML):
                continue  # where a schema is, or in which language a text
            if part.namespace or part.localname not in known:
                self.problem(
                    at, f"<{local(at)}> has the attribute `{part.localname}`, which nobody here knows; take it out"
                )
            else:
                found[part.localname] = str(value)
        return found

    # texts

    def text(self, at: ParsedElement, *attributes: str) -> str:
        """The text of an element as it stands, which has no elements in it."""
        self.attributes(at, *attributes)
        for child in elements(at):
            self.problem(child, f"<{local(at)}> holds a text and no elements; it has <{local(child)}>")
        return "".join([at.text or "", *(child.tail or "" for child in at)])

    def word(self, at: ParsedElement, *attributes: str) -> str:
        """The text without blanks around it; it must not be empty."""
        text = self.text(at, *attributes).strip()
        if not text:
            self.problem(at, f"<{local(at)}> is empty")
        return text

    def truth(self, at: ParsedElement) -> bool:
        text = self.word(at)
        if text and text not in TRUTHS:
            self.problem(at, f"<{local(at)}> is true or false, not {abbreviate(text)}")
        return TRUTHS.get(text, False)

    def count(self, at: ParsedElement, *attributes: str, least: int = 1) -> int:
        """A whole number."""
        text = self.word(at, *attributes)
        number = int(text) if text.isascii() and text.isdigit() and len(text) <= 20 else -1
        if text and not least <= number <= AMOUNT_MAX:
            self.problem(at, f"<{local(at)}> is a whole number from {least} on, not {abbreviate(text)}")
        return max(least, min(number, AMOUNT_MAX))

    def number(self, at: ParsedElement, *attributes: str) -> float | None:
        """Any number; INF is one, and NaN is not."""
        text = self.word(at, *attributes)
        return self.as_number(at, text) if text else None

    def as_number(self, at: ParsedElement, text: str) -> float | None:
        try:
            number = (
                float(text.replace("INF", "inf"))
                if not text.lower().startswith(("inf", "-inf"))
                else _float_or_infinity(text)
            )
        except ValueError:
            number = math.nan
        if math.isnan(number) or "_" in text:
            self.problem(at, f"<{local(at)}> holds a number, not {abbreviate(text)}")
            return None
        return number

    def path(self, at: ParsedElement, text: str) -> str:
        """A path that stays in the folder it is meant for, in its plainest form."""
        if not text:
            return ""
        parts = text.split("/")
        if text.startswith("/") or ".." in parts or "\0" in text or posixpath.normpath(text) == ".":
            self.problem(
                at, f"<{local(at)}> {abbreviate(text)} leads out of the job's folder: give a path in it, without `..`"
            )
            return ""
        if "${{" in text:
            self.problem(
                at, f"<{local(at)}> {abbreviate(text)} cannot be the path of a file here: take `${{{{` out of it"
            )
            return ""
        return posixpath.normpath(text)


def _float_or_infinity(text: str) -> float:
    return {"INF": math.inf, "-INF": -math.inf}.get(text, math.nan)


def elements(at: ParsedElement) -> list[ParsedElement]:
    return [child for child in at if isinstance(child.tag, str)]


def local(at: ParsedElement) -> str:
    return str(at.tag).rpartition("}")[2]


def namespace(at: ParsedElement) -> str:
    return etree.QName(at).namespace or ""


def abbreviate(text: str) -> str:
    plain = " ".join(text.split())
    return f"`{plain if len(plain) <= SHOWN_CHARS else plain[:SHOWN_CHARS] + '...'}`"
