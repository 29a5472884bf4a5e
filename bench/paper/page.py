"""docs/experiments.md: its prose is written by hand, its tables of claims are put between marks in it."""

from collections.abc import Mapping, Sequence
from typing import Final

from mendflow.sim.paper import Report
from mendflow.sim.paper.claims.judging import Judged
from mendflow.sim.paper.figures import DRAWN

NOTES: Final[dict[str, str]] = {
    "8.3": "Under d3f3 some jobs fail when they write, and are tried again while the pilot that has their file is busy"
    " with something else. These few read from the storage element.",
    "9.1": "Under d1f1 the two differ by seconds at most, as the paper says of reading. A workflow takes as long as its"
    " slowest chain of jobs, and that may be one that had to read.",
    "10.4": "The paper does not have such a cache; we do (`--share site`).",
    "12.2": "With sharing, a pilot that comes first may still find its file with a neighbour: C1 loses less than C2.",
    "12.4": "Without waitForData sharing helps W2 as well, and makes next to no difference for W3.",
}


def refreshed(text: str, report: Report, *, seeds: int, broken: Mapping[str, Sequence[tuple[str, str]]]) -> str:
    """The page with what was seen this time."""
    held = sum(each.holds for each in report.claims)
    claims = [f"{held} of {len(report.claims)} claims hold, with {seeds} seeds and {report.runs} runs in all.", ""]
    claims += [_figure(number, [each for each in report.claims if each.figure == number]) for number in DRAWN]
    variants = ["| changed to | does not hold | what is seen |", "|---|---|---|"]
    variants += [_row(name, found) for name, found in broken.items()]
    return between(between(text, "claims", "\n".join(claims)), "variants", "\n".join([*variants, ""]))


def between(text: str, mark: str, new: str) -> str:
    """The text with `new` in the place of what stood between two marks."""
    begin, end = f"<!-- {mark} -->\n", f"<!-- end of {mark} -->\n"
    before, _, rest = text.partition(begin)
    _, found, after = rest.partition(end)
    assert found, f"the page has no place for {mark}"
    return f"{before}{begin}\n{new}\n{end}{after}"


def _figure(number: int, claims: Sequence[Judged]) -> str:
    lines = [f"### Figure {number}", "", f"![Figure {number}](experiments/figure-{number}.svg)", ""]
    lines += ["| | the paper | here | holds |", "|---|---|---|---|"]
    lines += [f'| {each.id} | "{each.sentence}" | {each.seen} | {"yes" if each.holds else "no"} |' for each in claims]
    notes = [f"- {each.id}: {NOTES[each.id]}" for each in claims if each.id in NOTES]
    return "\n".join([*lines, *(["", *notes] if notes else []), ""])


def _row(name: str, claims: Sequence[tuple[str, str]]) -> str:
    ids = ", ".join(id for id, _ in claims) or "nothing"
    return f"| {name} | {ids} | {'; '.join(f'{id}: {seen}' for id, seen in claims)} |"
