"""What people write as the keys of a loop and in place of its list, and how that is said here."""

import re
from typing import Any, Final

from mendflow.core.data.path_patterns import is_pattern
from mendflow.formats.hints import Hints, hints
from mendflow.formats.yaml.document import ListNode, MapNode, ScalarNode, YamlNode
from mendflow.lazy import lazy_pattern

CALLED: Final = lazy_pattern(r"(?:\$\{\{\s*)?(\w+)\(\s*['\"]?([^'\")]*)['\"]?\s*\)(?:\s*\}\})?")
NUMBERS: Final = lazy_pattern(r"(\d{1,9})\s*(?:\.\.|-|:)\s*(\d{1,9})")
MEMBERS: Final = lazy_pattern(r"(inputs|jobs)\.[\w.\-\[\]'\"]+")
NAMED: Final = lazy_pattern(r"(\w+)\s+in\s+(.+)")
NAME: Final = lazy_pattern(r"[A-Za-z_]\w*")
OVER_RESULTS: Final = (
    'over an input it is `"${{ inputs.NAME }}"`, over what a job gives `"${{ jobs.NAME.outputs }}"`, and over its '
    'files `"${{ jobs.NAME.files.FILE }}"`'
)
WORDS: Final = lazy_pattern(r"[\w./-]+(?:[\s,]+[\w./-]+)*")

LISTS_OF_LOOPS: Final = "the list has the element's name before it, as `for-each: {sample: [...]}`"
FILES_OF_A_LOOP: Final = (
    "the files of a loop are an input: `inputs: {samples: {type: files, default: PATTERN}}`, and then "
    '`for-each: {sample: "${{ inputs.samples }}"}` with `inputs: {in.txt: "${{ sample }}"}`'
)
TABLES: Final = (
    "a table is an input, `inputs: {samples: {type: table, default: samples.csv}}`, and `inputs.samples` the list of "
    'its rows: `for-each: {s: "${{ inputs.samples }}"}`, and then `${{ s.COLUMN }}`'
)
LOOP_HINTS: Final[Hints] = hints(
    ("parallel max concurrency workers threads jobs limit batch", "how many run at a time is `max-parallel: 4`"),
    ("fail-fast failfast", "`on-failure: stop` ends the others when one has failed"),
    ("continue-on-error", "how many may fail is `tolerate: 10 %`"),
    ("include", "a further element stands in the list itself; `zip: true` takes lists side by side"),
    ("exclude except", "an element is left out by a condition of the job, such as `if: sample != 'a'`"),
    (
        "var variable loop-var name item-name iterator",
        "the name of the element stands before the list, as `for-each: {sample: [...]}`",
    ),
    ("range numbers count", "numbers are `for-each: {from: 1, to: 10}`"),
    ("matrix product", "lists stand in `for-each` itself, as `for-each: {x: [...], y: [...]}`"),
    ("list values each over", LISTS_OF_LOOPS),
    ("glob pattern files file path paths", FILES_OF_A_LOOP),
    (
        "min-failures max-failures max-failed max-fail failures allow-failures allowed-failures allow-failure "
        "failure-threshold failure-rate success-rate ignore-errors optional tolerance max-fail-percentage",
        "how many may fail is `tolerate: 10 %`, or `tolerate: 3`",
    ),
    (
        "step by increment stride",
        "numbers with a step are a list with a name: `for-each: {n: {from: 0, to: 10, step: 2}}`",
    ),
    ("order sequential serial", "one after another is `in: sequence`"),
)
"""For keys of `for-each` that are no lists."""


def guessed_list(node: YamlNode, name: str = "") -> tuple[str, str]:
    """A hint, and the list that was probably meant; each may be empty. `name` is what the element is called, if it has
    a name."""
    if isinstance(node, MapNode):
        return _map_guess(node, name)
    value = node.value if isinstance(node, ScalarNode) else None
    if isinstance(value, bool) or value is None:
        return "", ""
    if isinstance(value, int):
        return "", _counted(1, value, name)
    return _text_guess(value, name) if isinstance(value, str) else ("", "")


def _text_guess(text: str, name: str) -> tuple[str, str]:
    if found := CALLED.fullmatch(text.strip()):
        return _called_guess(found[1], found[2], name)
    if found := NUMBERS.fullmatch(text.strip()):
        return "", _counted(int(found[1]), int(found[2]), name)
    if MEMBERS.fullmatch(text.strip()):
        return "", f'`"${{{{ {text.strip()} }}}}"`'
    if (found := NAMED.fullmatch(text.strip())) and not name:
        inner = found[2] if found[2].startswith("[") else f'"${{{{ {found[2]} }}}}"'
        return "", f"`{{{found[1]}: {inner}}}`"
    if is_pattern(text):
        return files_hint(text), ""
    if text.strip().endswith((".csv", ".tsv")):
        return TABLES.replace("samples.csv", text.strip()), ""
    if NAME.fullmatch(text.strip()):
        word = text.strip()
        return OVER_RESULTS.replace("NAME", word), f"`[{word}]`"
    if WORDS.fullmatch(text.strip()):
        return "", f"`[{', '.join(text.replace(',', ' ').split())}]`"
    return "", ""


def _called_guess(function: str, given: str, name: str) -> tuple[str, str]:
    if function in ("glob", "files", "listdir", "glob_wildcards", "fromPath", "ls"):
        return files_hint(given), ""
    if function in ("csv", "read_csv", "splitCsv", "readCsv", "fromCsv", "read_table", "tsv", "sheet", "samplesheet"):
        return TABLES, ""
    if function in ("range", "seq"):
        numbers = [int(each) for each in re.findall(r"-?\d{1,9}", given)]
        first, end = (0, numbers[0]) if len(numbers) == 1 else (numbers[0], numbers[1]) if numbers else (0, 10)
        return "", _counted(first, end if function == "seq" else end - 1, name)
    if function in ("lines", "readlines", "open", "read"):
        return "a job reads a file and gives its lines as an output, and the loop goes over `jobs.NAME.outputs.KEY`", ""
    return "", ""


def _map_guess(node: MapNode, name: str) -> tuple[str, str]:
    ends: list[Any] = []
    for key in ("from", "to"):
        value = node.entries[key].value if key in node.entries else None
        ends.append(value.value if isinstance(value, ScalarNode) else None)
    if all(isinstance(end, int) for end in ends):
        return "", _counted(ends[0], ends[1], name)
    if any(isinstance(entry.value, ListNode) for entry in node.entries.values()):
        return "lists stand in `for-each` itself, as `for-each: {x: [...], y: [...]}`", ""
    return "a loop goes over a list; of a map it is the list of its keys, as `[a, b]`", ""


def _counted(first: int, last: int, name: str) -> str:
    named = f", as: {name}" if name else ""
    return f"`for-each: {{from: {first}, to: {last}{named}}}`"


def files_hint(pattern: str) -> str:
    """How a loop goes over the files of a pattern."""
    return FILES_OF_A_LOOP.replace("PATTERN", pattern or "samples/*.txt")
