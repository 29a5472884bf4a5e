"""What stays because something that stays refers to it: cases through cases, and the files of all that stays."""

from collections.abc import Collection, Mapping

import msgspec

from mendflow.core.model.ids import CaseId


class Referrers(msgspec.Struct, frozen=True):
    """What a case that may go refers to: other cases, and stored files by their digests."""

    cases: Collection[CaseId] = frozenset()
    files: Collection[str] = frozenset()


class Marked(msgspec.Struct, frozen=True):
    """Which cases stay after all, each with what refers to it; and the files that nothing that stays refers to."""

    spared: Mapping[CaseId, str]
    unreferenced: frozenset[str]


def marked(
    going: Mapping[CaseId, Referrers], wanted_cases: Mapping[CaseId, str], wanted_files: Collection[str]
) -> Marked:
    """Follow the references from what stays: `wanted_cases` are those of the going cases that it refers to, with what
    does; `wanted_files` are the files of the going cases that it refers to."""
    spared = {case: by for case, by in wanted_cases.items() if case in going}
    agenda = list(spared)
    while agenda:
        by = agenda.pop()
        for case in going[by].cases:
            if case in going and case not in spared:
                spared[case] = f"case {by}"
                agenda.append(case)
    stay = set(wanted_files).union(*(going[case].files for case in spared))
    files = frozenset[str]().union(*(each.files for case, each in going.items() if case not in spared))
    return Marked(spared=spared, unreferenced=files - stay)
