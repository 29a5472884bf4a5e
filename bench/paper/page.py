"""docs/understand/experiments.md: its prose is written by hand, its tables of claims are put between marks in it."""

from collections.abc import Mapping, Sequence
from typing import Final

from bench.paper.variants import Variant
from experiments.paper import PaperReport
from experiments.paper.claims.judging import JudgedClaim, summary_text
from experiments.paper.figures import FIGURES_BY_NUMBER

NOTES: Final[dict[str, str]] = {
    "7.5": "The line of direct submission lies at zero for these minutes, and once more at the end: nothing runs, and"
    " nobody has been told yet that the last job is over.",
    "8.3": "Under d3f3 some jobs fail when they write, and are tried again while the pilot that has their file is busy"
    " with something else. These few read from the storage element.",
    "9.1": "Under d1f1 the two differ by seconds at most, as the paper says of reading. A workflow takes as long as its"
    " slowest chain of jobs, and that may be one that had to read.",
    "10.1": '"Much" is true beside W3, and not beside W2. Of that caches save almost as much: both jobs that read a'
    " file are mostly given to pilots of the host that has it.",
    "10.4": "The paper does not have such a cache; we do (`--share site`).",
    "12.1": "With sharing one job in 80 reads from afar: the one whose file was made last, with no links to it when"
    " step1 begins, if the pilot that made it takes another job of its host.",
    "12.2": "With sharing, a pilot that comes first may still find its file with a neighbour: C1 loses less than C2.",
    "12.4": "Without waitForData, which is what the paper calls C1, sharing helps W2 as well, and for W3 makes no"
    ' difference that could be told from chance: "marginally better" is seen with waitForData only.',
    "12.8": "Seen with waitForData only, as 12.4. Of the 40 pairs of files one lies on one host, on the average, and"
    " with some seeds none.",
}


def refreshed(text: str, report: PaperReport, *, seeds: int, variants: Mapping[str, Variant]) -> str:
    """The page with what was seen this time."""
    claims = [f"{summary_text(report.claims)}, with {seeds} seeds and {report.runs} runs in all.", ""]
    claims += [
        _figure(number, [each for each in report.claims if each.figure == number]) for number in FIGURES_BY_NUMBER
    ]
    rows = ["| changed to | figures | does not hold, or is open |", "|---|---|---|"]
    rows += [_row(name, found) for name, found in variants.items()]
    return between(between(text, "claims", "\n".join(claims)), "variants", "\n".join([*rows, ""]))


def between(text: str, mark: str, new: str) -> str:
    """The text with `new` in the place of what stood between two marks."""
    begin, end = f"<!-- {mark} -->\n", f"<!-- end of {mark} -->\n"
    before, _, rest = text.partition(begin)
    _, found, after = rest.partition(end)
    assert found, f"the page has no place for {mark}"
    return f"{before}{begin}\n{new}\n{end}{after}"


def _figure(number: int, claims: Sequence[JudgedClaim]) -> str:
    lines = [f"### Figure {number}", "", f"![Figure {number}](experiments/figure-{number}.svg)", ""]
    lines += ["| | the paper | here | holds if | holds |", "|---|---|---|---|---|"]
    lines += [f'| {each.id} | "{each.sentence}" | {each.seen} | {each.holds_if} | {each.verdict} |' for each in claims]
    notes = [f"- {each.id}: {NOTES[each.id]}" for each in claims if each.id in NOTES]
    return "\n".join([*lines, *(["", *notes] if notes else []), ""])


def _row(name: str, found: Variant) -> str:
    figures = ", ".join(map(str, found.figures))
    broken = [f"{each.id}{' (open)' if each.open else ''}: {each.seen}" for each in found.broken]
    return f"| {name} | {figures} | {'; '.join(broken) or 'all hold'} |"
