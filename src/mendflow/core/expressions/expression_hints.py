"""What people write in expressions from habit, and how the same is said in CEL."""

from typing import Final

from mendflow.lazy import lazy_pattern

_OPERATORS: Final = {
    "and": "`&&`",
    "or": "`||`",
    "not": "`!`",
    "is": "`==`",
    "if": "`condition ? one : other`",
    "else": "`condition ? one : other`",
    "|": "a function behind the value, as x.join(' '), or `||`",
    "&": "`&&`",
}
"""Words and signs between values in other languages, and what stands here."""

_CALLED: Final = lazy_pattern(r"(\w+)\([^()]*$")
_WORD: Final = lazy_pattern(r"\w+|&+|\|+|[=!<>]+")


def _functions(*groups: tuple[str, str]) -> dict[str, str]:
    return {word: sentence for words, sentence in groups for word in words.split()}


_FUNCTIONS: Final = _functions(
    ("failure", "whether a job failed is failed(jobs.NAME)"),
    ("success", "whether a job ended well is has(jobs.NAME)"),
    ("cancelled", "whether a job ended well is has(jobs.NAME), and whether it failed is failed(jobs.NAME)"),
    ("len length count", "how long a list or a text is says size(x)"),
    ("join", "the texts of a list are put together by x.join(' ')"),
    ("str toString", "a value as a text is string(x)"),
    ("toJSON toJson dumps", "a value as JSON is json(x)"),
    ("float number", "a text as a number is double(x) or int(x)"),
    ("contains startsWith endsWith split replace lower upper", "it stands behind the text, as x.contains('a')"),
    ("format", "values are put into a text by expressions in it, as `a ${{ x }}`, or by 'a ' + string(x)"),
    ("seq arange", "a list of numbers is range(1, 11), and a loop over them `for-each: {from: 1, to: 10}`"),
    (
        "csv read_csv readCsv splitCsv fromCsv from_csv read_table tsv sheet samplesheet",
        "a table is an input, `inputs: {samples: {type: table, default: samples.csv}}`, and `inputs.samples` its rows",
    ),
    (
        "groupTuple groupby groupBy group groupKey group_tuple",
        "rows are grouped by rows.group_by('sample'), which gives a list of {key, items}",
    ),
    ("expand", "a list is worked out from another by inputs.samples.map(s, s + '.txt')"),
    (
        "zip combine cross product",
        "lists are combined by a loop: `for-each: {x: [...], y: [...]}`, with `zip: true` or not",
    ),
    (
        "glob listdir files glob_wildcards",
        "files are an input, `inputs: {samples: {type: files, default: samples/*.txt}}`, and then `inputs.samples`",
    ),
    (
        "basename stem suffix ext extension",
        "the name of a file is x.name, without its ending x.stem, and its ending x.suffix",
    ),
    ("now date today time", "a command knows the time, as `$(date +%F)`, or it is given as an input"),
    ("env getenv", "a command reads its environment itself: `$NAME`"),
    ("min", "the least of several numbers is math.least(a, b), and that of a list math.least(x)"),
    ("max", "the greatest of several numbers is math.greatest(a, b), and that of a list math.greatest(x)"),
    (
        "max_by maxBy argmax min_by minBy argmin sort_by sorted_by order_by orderBy sortby best",
        "a list in the order of a member is x.sortBy(o, o.score): the least is x.sortBy(o, o.score)[0], and the "
        "greatest x.sortBy(o, -o.score)[0]",
    ),
    ("abs floor ceil round", "it is among math's, as math.round(x)"),
    (
        "sum sort sorted distinct unique",
        "it stands behind the list: x.sum(), x.sort(), x.distinct(); by a member it is x.sortBy(o, o.score)",
    ),
)


def function_hint(name: str) -> str:
    """How the function of another language is said here, with a semicolon before it; empty if that is not known."""
    return f"; {_FUNCTIONS[name]}" if name in _FUNCTIONS else ""


def operator_hint(text: str, offset: int) -> str:
    """What stands here for the word at that place, or for the one before it; empty if there is nothing to say."""
    before = [found.group() for found in _WORD.finditer(text[:offset])]
    here = _WORD.match(text, offset)
    around = _CALLED.search(text[:offset])
    if around and here and here.group() == "=" and (hint := function_hint(around[1])):
        return hint
    for word in [here.group() if here else "", *before[-1:]]:
        if word == "=":
            return "; to compare write `==`, and texts in quotes: x == 'a'"
        if word in _OPERATORS:
            return f"; for `{word}` write {_OPERATORS[word]}"
    return ""


def choice_hint(operator: str) -> str:
    """`&&` and `||` of texts choose between them in other languages."""
    return "; to choose a value write `condition ? one : other`" if operator in ("_&&_", "_||_") else ""
