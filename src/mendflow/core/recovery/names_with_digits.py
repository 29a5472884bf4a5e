"""Which digits in a message are part of a name, and which count something.

`bowtie2` and `minimap2` are two programs, `node2` and `node7` are two of one kind. So digits stay in a word that begins
with letters and has one or two of them at its end (`gatk4`, `hg38`, `bwa-mem2`), in a version behind a name
(`samtools-1.19`, `GLIBC_2.34`), and in names that people know (`sha256`, `x86_64`, `utf-8`). They go where the letters
before them say that things of one kind are numbered (`node`, `sample`, `chunk`, a single letter), and where they are
many, as in accession numbers."""

import re
from typing import Final

from mendflow.lazy import lazy_pattern

NUMBER: Final = "<n>"
ID: Final = "<id>"

_NUMBERED: Final = lazy_pattern(
    r"""
    address| agent| array| attempt| batch| block| bin| box| branch| bucket| case| cell| channel| chapter| char| chr|
    chrom| chromosome| chunk| client| cluster| col| column| container| copy| core| count| cpu| cycle| day| dev|
    device| disk| element| entry| epoch| event| exp| experiment| field| file| flow| fold| frame| gen| generation|
    gpu| group| host| id| image| img| in| index| input| instance| item| iter| iteration| job| lane| layer| len|
    length| level| line| machine| message| mod| month| nid| no| node| num| number| obj| object| offset| out| output|
    page| pair| pane| part| partition| patient| pid| pilot| plate| pod| point| pool| port| pos| position| proc|
    process| queue| rank| read| reads| record| ref| reg| region| rep| repeat| replicate| request| retry| round| row|
    run| sample| scan| sector| section| seed| segment| seq| sequence| series| server| session| set| shard| sim|
    site| size| slice| slot| split| stage| station| step| stripe| subject| table| take| task| temp| test| thread|
    tile| time| tmp| token| trial| try| turn| unit| user| val| value| var| version| vm| volume| well| window|
    worker| year| zone
    """,
    re.VERBOSE | re.IGNORECASE,
)
"""What things are called that are numbered."""

_KNOWN: Final = (
    r"x86[-_]64|x86|x509|h5|sha-?\d{1,3}|utf-(?:8|16|32)|iso-?8859-\d{1,2}|cp\d{3,4}|(?:float|u?int|complex)\d{1,3}"
)
_VERSION: Final = r"v?\d{1,3}(?:\.\d{1,3}){1,3}"
_WITH_DIGITS: Final = lazy_pattern(
    rf"\b(?P<known>{_KNOWN})(?![\w])"
    rf"|\b(?P<version>[A-Za-z][A-Za-z_]*\d{{0,2}}(?<=\w\w)[-_/]?{_VERSION})(?!\w)(?!\.\d)"
    r"|\bv\d{1,3}(?:\.\d{1,3}){0,3}(?!\w)(?!\.\d)"
    r"|(?<=\.so)(?:\.\d{1,3}){1,3}\b"
    r"|\b(?P<name>[A-Za-z][A-Za-z_]{0,20}[A-Za-z]\d{1,2})(?!\w)(?!\.\d)"
    r"|[-+]?\b\d[\d_,]*(?:\.\d+)?(?:[eE][-+]?\d+)?(?=\b|[A-Za-z])"
    r"|(?<=[A-Za-z_])\d+\b",
    re.IGNORECASE,
)
_HYPHENATED: Final = lazy_pattern(r"\b(?=[\w.-]*-\w*\d)[A-Za-z_][\w.]*+(?:-[\w.]++)+")
_DIGITS: Final = lazy_pattern(r"\d+(?:\.\d+)*")
_STABLE_PART: Final = lazy_pattern(rf"(?![0-9a-f]{{6}})(?:[A-Za-z_]{{2,20}}\d{{1,2}}(?:\.[A-Za-z]\w*)*|{_VERSION})")
_KNOWN_WORD: Final = lazy_pattern(_KNOWN, re.IGNORECASE)


def without_numbers(text: str) -> str:
    """The text with a mark in place of each number that counts something, and of each id with hyphens."""
    return _WITH_DIGITS.sub(_numbers, _HYPHENATED.sub(_hyphens, text))


def _numbers(found: re.Match[str]) -> str:
    word = found[0]
    if found["known"] is not None or word[0] == ".":
        return word
    if found["version"] is None and found["name"] is None:
        return word if word[0] in "vV" else NUMBER
    return _DIGITS.sub(NUMBER, word) if _is_numbered(word) else word


def _is_numbered(word: str) -> bool:
    """Whether the letters before the digits say what is numbered: `node12`, `big_chunk3`."""
    letters = word.rstrip("0123456789._-/")
    return _NUMBERED.fullmatch(letters.rpartition("_")[2]) is not None


def _hyphens(found: re.Match[str]) -> str:
    """A word with hyphens and digits behind one of them: a name with a version, one of several that are numbered, or an
    id such as `align-7f3k`."""
    word = found[0].rstrip(".")
    end = found[0][len(word) :]
    if _KNOWN_WORD.fullmatch(word):
        return found[0]
    first, *parts = word.split("-")
    before = first
    for part in parts:
        counts = part.isdigit() and (len(part) <= 2 or _is_numbered(before))
        if not counts and any(map(str.isdigit, part)) and not _STABLE_PART.fullmatch(part):
            return ID + end
        before = part
    return "-".join([first, *(NUMBER if part.isdigit() else part for part in parts)]) + end
