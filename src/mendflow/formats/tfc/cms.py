"""CMS's catalogue format: a `storage-mapping` with rules from names to places (`lfn-to-pfn`) and back (`pfn-to-lfn`).

Rules for custodial copies are for tape, on request only; nothing here requests that, so they are left out. Space tokens
select a place on a storage system and do not affect names; they are ignored."""

from typing import Final

from mendflow.core.data.name_mapping import rule_flaws
from mendflow.core.model.data import NameRule, NameRules
from mendflow.core.model.errors import BadRules, Problem
from mendflow.formats.spelling import nearest_word
from mendflow.formats.xml.markup import MarkupElement, parse_xml, serialize

ROOT: Final = "storage-mapping"
TO_PHYSICAL, TO_LOGICAL = "lfn-to-pfn", "pfn-to-lfn"
REQUIRED: Final = ("protocol", "path-match", "result")
KNOWN: Final = (*REQUIRED, "chain", "destination-match", "is-custodial", "space-token")


def read_cms(text: bytes | str, file: str) -> NameRules:
    """The rules of a file. Raises BadRules with every problem that it has."""
    root = parse_xml(text, file)
    reader = _Reading(file)
    if root.local != ROOT:
        reader.problem(root, f"a file catalogue of CMS begins with <{ROOT}>, not with <{root.tag}>")
    placed = [(each, rule) for each in root.elements() if (rule := reader.rule(each)) is not None]
    for tag in (TO_PHYSICAL, TO_LOGICAL):
        listed = [(each, rule) for each, rule in placed if each.local == tag]
        protocols = {rule.protocol for _, rule in listed}
        for each, rule in listed:
            for flaw in rule_flaws(rule, protocols):
                reader.problem(each, flaw)
    if reader.problems:
        raise BadRules(problems=reader.in_order())
    return NameRules(
        to_physical=tuple(rule for each, rule in placed if each.local == TO_PHYSICAL),
        to_logical=tuple(rule for each, rule in placed if each.local == TO_LOGICAL),
    )


class _Reading:
    def __init__(self, file: str) -> None:
        self._file = file
        self.problems: list[Problem] = []

    def problem(self, at: MarkupElement, message: str, suggestion: str = "") -> None:
        self.problems.append(Problem(file=self._file, line=at.line, message=message, suggestion=suggestion))

    def in_order(self) -> list[Problem]:
        return sorted(self.problems, key=lambda problem: problem.line)

    def rule(self, at: MarkupElement) -> NameRule | None:
        """The rule of an element, None where it is none of ours."""
        if at.local not in (TO_PHYSICAL, TO_LOGICAL):
            known = (TO_PHYSICAL, TO_LOGICAL)
            self.problem(
                at,
                f"<{at.tag}> is not known here; it has <{TO_PHYSICAL}> and <{TO_LOGICAL}>",
                nearest_word(at.tag, known),
            )
            return None
        given = at.attributes
        for name in given:
            if name not in KNOWN:
                self.problem(at, f"<{at.tag}> has no attribute `{name}`", nearest_word(name, KNOWN))
        if missing := [name for name in REQUIRED if name not in given]:
            self.problem(at, f"<{at.tag}> needs {' and '.join(f'`{name}`' for name in missing)}")
            return None
        if given.get("is-custodial", "n").lower().startswith("y"):
            return None
        return NameRule(
            protocol=given["protocol"],
            match=given["path-match"],
            result=given["result"],
            chain=given.get("chain", ""),
            destination=given.get("destination-match", ".*"),
        )


def write_cms(rules: NameRules) -> str:
    """The file of these rules. Reading it gives the same rules."""
    written = [_element(TO_PHYSICAL, rule) for rule in rules.to_physical]
    written += [_element(TO_LOGICAL, rule) for rule in rules.to_logical]
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{serialize(MarkupElement(ROOT, {}, [*written]), 0)}\n'


def _element(tag: str, rule: NameRule) -> MarkupElement:
    given = {"protocol": rule.protocol}
    if rule.destination != ".*":
        given["destination-match"] = rule.destination
    if rule.chain:
        given["chain"] = rule.chain
    return MarkupElement(tag, {**given, "path-match": rule.match, "result": rule.result}, [])
