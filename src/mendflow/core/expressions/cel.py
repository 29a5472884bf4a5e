"""CEL, through its C++ implementation: compiled once, given only the data that it names, and bounded in work.

It differs from bare CEL in three ways that users expect. Integers and floats mix in arithmetic (`2 * 0.5`), which CEL
leaves undefined, and a division leaves nothing out (`7 / 2` is 3.5, `6 / 2` is 3). A duration is returned as
milliseconds, a timestamp as milliseconds since 1970. And there are functions of our own: see cel_functions."""

import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final

from mendflow.core.expressions.cel_functions import COMPLETED_END, SKIPPED_END, extension
from mendflow.core.expressions.cel_source import SORT_BY, SORTED, CelSource, cel_source
from mendflow.core.expressions.contract import ExpressionError, Lookup
from mendflow.core.expressions.expression_hints import choice_hint, function_hint, operator_hint
from mendflow.core.expressions.file_parts import file_part, names_file_parts, with_file_parts, without_file_parts
from mendflow.core.expressions.kinds import kind_of, no_overload
from mendflow.core.expressions.metering import metered
from mendflow.core.expressions.scanner import ENDS, REWRITE, Reference, Scan, plain_reference, scan
from mendflow.core.expressions.text_values import SEAL, demand_whole_texts, find_spilled, seal, too_large
from mendflow.core.expressions.work_budget import WORK, handed_over
from mendflow.core.model.values import Value, file_of, is_spilled
from mendflow.lazy import LazyModule, lazy_pattern

if TYPE_CHECKING:
    from cel_expr_python import cel
    from cel_expr_python.ext import ext_math, ext_strings

    from mendflow import references_to_none
else:
    cel = LazyModule("cel_expr_python.cel")
    ext_math = LazyModule("cel_expr_python.ext.ext_math")
    ext_strings = LazyModule("cel_expr_python.ext.ext_strings")
    references_to_none = LazyModule("mendflow.references_to_none")

TEXT_CHARS_MAX: Final = 10_000
SHORT_CHARS: Final = 500
COMPILED_UNITS: Final = 20
"""To compile an expression takes so many microseconds for each of its characters; of a short one that does not
matter."""

COMPILED_MAX: Final = 4096

CHECKERS_MAX: Final = 64

ERROR_LINE: Final = lazy_pattern(r"ERROR: <input>:(\d+):(\d+): ([^\n]*)")
FILE_WORDS: Final = frozenset({"basename", "extension", "ext", "filename"})
MISSING_KEY: Final = lazy_pattern(r'Key not found in map : "(.*)"')
NO_FUNCTION: Final = lazy_pattern(r"undeclared reference to '([^']*)'")
NO_SIGN: Final = lazy_pattern(r"token recognition error at: '(.)")
WRONG_KINDS: Final = lazy_pattern(r"found no matching overload for '([^']*)' applied to '\((.*)\)'")
NO_MEMBERS: Final = "a member was requested of a value that has none"
NO_OVERLOAD: Final = lazy_pattern(r"No matching overloads found : (.*)")
COMPARISONS: Final = frozenset({"_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_"})
NUMERIC: Final = frozenset({"int", "uint", "double"})
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@cache
def _extensions() -> list[Any]:
    """Every environment has them, so this is where the library is first used."""
    references_to_none.add_references()
    return [ext_strings.ExtStrings(), ext_math.ExtMath(), extension()]


@cache
def _environment() -> Any:
    return cel.NewEnv(extensions=_extensions())


def _compiled(text: str) -> Any:
    """The program of the library, with its work counted."""
    environment = _environment()
    return environment.deserialize(metered(environment.compile(text, disable_check=True).serialize()))


class CompiledExpression:
    """A compiled expression. `program` is None for a plain path, which needs no CEL."""

    __slots__ = ("names", "path", "program", "reads_file_parts", "references", "text")

    def __init__(self, text: str) -> None:
        if len(text) > TEXT_CHARS_MAX:
            raise ExpressionError(f"the expression is {len(text)} characters long; at most {TEXT_CHARS_MAX} are taken")
        self.text = text
        self.references: tuple[Reference, ...]
        self.path = plain_reference(text)
        self.reads_file_parts = names_file_parts(text)
        if self.path is not None:
            self.references, self.names, self.program = (self.path,), frozenset({self.path.name}), None
            return
        if len(text) > SHORT_CHARS:
            WORK.demand_time(len(text) * COMPILED_UNITS)
        scanned = scan(text)
        self.references = tuple(sorted(scanned.references, key=lambda each: len(each.members)))
        self.names = frozenset(reference.name for reference in scanned.references)
        self.path = plain_path(scanned.text, scanned.references)
        for_library = cel_source(scanned.text)
        try:
            self.program = None if self.path else _compiled(for_library.text)
        except RuntimeError as error:
            raise syntax_error(original_place(scanned, for_library), for_library.text, str(error)) from None

    def evaluate(self, lookup: Lookup) -> Value:
        if self.path:
            return walk(self.path, lookup)
        if self.reads_file_parts:
            return without_file_parts(self._computed(lambda name: with_file_parts(lookup(name))))
        return self._computed(lookup)

    def _computed(self, lookup: Lookup) -> Value:
        data, missing = gather(self.references, lookup)
        assert self.program is not None
        WORK.begin(handed_over(data))
        if WORK.is_spent:
            raise WORK.ended(self.text)
        for name, value in data.items():
            demand_whole_texts(f"`{name}`", value)
        closed = find_spilled(data)
        try:
            result = self.program.eval(data=data if closed is None else seal(data))
        except RuntimeError as error:
            if WORK.is_spent:
                raise WORK.ended(self.text) from None
            if closed is not None:
                raise too_large(f"a value in `{self.text}`", closed) from None
            raise ExpressionError(f"`{self.text}`: {explain(str(error))}") from None
        if WORK.is_spent:
            raise WORK.ended(self.text)
        if result.type() == cel.Type.ERROR:
            if closed is not None:
                raise too_large(f"a value in `{self.text}`", closed)
            if missing:
                raise ExpressionError(f"`{self.text}`: {next(iter(missing.values()))}")
            said = explain(str(result.plain_value()))
            raise ExpressionError(f"`{self.text}`: {(said == NO_MEMBERS and failed_element(data)) or said}")
        value = result.plain_value()
        return value if value is None or type(value) in (bool, int, str) else self.plain(value)

    def plain(self, value: Any) -> Value:
        """The value as JSON has it."""
        match value:
            case None | bool() | int() | str():
                return value
            case float():
                if not math.isfinite(value):
                    raise ExpressionError(f"`{self.text}` gives {value}, which is not a number that can be kept")
                return value
            case list():
                return [self.plain(part) for part in value]
            case dict():
                if SEAL in value:
                    return value[SEAL]
                return {key if isinstance(key, str) else str(key): self.plain(part) for key, part in value.items()}
            case timedelta():
                return round(value / timedelta(milliseconds=1))
            case datetime():
                return round((value - EPOCH) / timedelta(milliseconds=1))
        raise ExpressionError(
            f"`{self.text}` gives {type(value).__name__}, which is not plain data; convert it to text"
        )


@lru_cache(maxsize=COMPILED_MAX)
def compile_expression(text: str) -> CompiledExpression:
    return CompiledExpression(text)


def original_place(scanned: Scan, compiled: CelSource) -> Callable[[int], int]:
    """Leads from a place in what the library compiles to the same in the text as it was written."""
    return lambda offset: scanned.original_offset(compiled.original_offset(offset))


def plain_path(text: str, references: tuple[Reference, ...]) -> Reference | None:
    """The one reference that the whole expression is, if it is no more than a path such as `jobs.a.outputs.n`."""
    if len(references) != 1:
        return None
    whole = ".".join((references[0].name, *references[0].members))
    return references[0] if text.strip().replace("`", "") == whole else None


def walk(path: Reference, lookup: Lookup) -> Value:
    try:
        value = lookup(path.name)
    except KeyError as error:
        raise ExpressionError(unknown_name(path.name, error)) from None
    so_far = path.name
    for member in path.members:
        if not isinstance(value, dict):
            raise ExpressionError(f"`{so_far}` is {kind_of(value)} and has no member `{member}`")
        if is_spilled(value):
            raise too_large(so_far, value)
        if (part := file_part(value, member)) is not None:
            value, so_far = part, f"{so_far}.{member}"
            continue
        if member not in value and file_of(value) is not None:
            raise ExpressionError(f"`{so_far}` is a file and has no `{member}`{file_hint(so_far, member)}")
        if member not in value:
            raise ExpressionError(f"`{so_far}` has no `{member}`{closest_name(member, value)}")
        value, so_far = value[member], f"{so_far}.{member}"
    return value


def gather(references: tuple[Reference, ...], lookup: Lookup) -> tuple[dict[str, Value], dict[str, str]]:
    """Only the data that the references (shortest first) use, and a sentence for each unknown name. A missing name is
    an error only if the evaluation needs it: `has(jobs.a) && jobs.a.outputs.n > 3` is valid."""
    data: dict[str, Value] = {}
    missing: dict[str, str] = {}
    for name, members, _ in references:
        family, _, rest = name.partition(".")
        place = data.setdefault(family, {}) if rest else data
        try:
            value = end_of(rest, lookup) if family == ENDS else lookup(name)
        except KeyError as error:
            missing[name] = unknown_name(name, error)
            continue
        demand_small(name, value, members)
        graft(place, rest or family, value, members)
    return data, missing


def end_of(job: str, lookup: Lookup) -> str:
    """How a job ended, by a lookup that may know only what jobs left."""
    try:
        return str(lookup(f"{ENDS}.{job}"))
    except KeyError:
        pass
    try:
        lookup(f"jobs.{job}")
    except KeyError:
        return SKIPPED_END
    return COMPLETED_END


def demand_small(name: str, value: Value, members: tuple[str, ...]) -> None:
    """Refuse a path to, or into, a value that was spilled."""
    for member in members:
        if not isinstance(value, dict) or is_spilled(value) or member not in value:
            break
        name, value = f"{name}.{member}", value[member]
    if is_spilled(value):
        raise too_large(name, value)


def graft(place: dict[str, Value], name: str, value: Value, members: tuple[str, ...]) -> None:
    """Put the part of the value that the members lead to into `place[name]`. References come shortest first, so that a
    longer path never narrows a whole value."""
    for member in members:
        if not isinstance(value, dict) or place.get(name) is value:
            break
        place = place.setdefault(name, {})
        if member not in value:
            return
        name, value = member, value[member]
    place[name] = value


def closest_name(name: str, known: Any) -> str:
    close = get_close_matches(name, [one for one in known if isinstance(one, str)], 1)
    return f"; did you mean `{close[0]}`?" if close else ""


def file_hint(file: str, member: str) -> str:
    """What to write for a member that a file would have in Python."""
    if member not in FILE_WORDS:
        return "; it has `name`, `stem`, `suffix` and `bytes`"
    return f"; its name is `{file}.name`, without its ending `{file}.stem`, and its ending `{file}.suffix`"


def unknown_name(name: str, error: KeyError) -> str:
    known = (
        error.args[1] if len(error.args) > 1 and isinstance(error.args[1], (list, tuple, set, frozenset, dict)) else ()
    )
    if name.startswith("jobs."):
        return f"nothing is known of `{name}`: it has not completed here{closest_name(name, known)}"
    return f"there is no `{name}`{closest_name(name, known)}"


def failed_element(data: Mapping[str, Value]) -> str:
    """Which element of a loop's outputs is null, if one is, and how to leave it out."""
    for name, left in data.get("jobs", {}).items():
        outputs = left.get("outputs") if isinstance(left, dict) else None
        if isinstance(outputs, list) and None in outputs:
            return (
                f"{name}[{outputs.index(None)}] gave no result, so it is null in `jobs.{name}.outputs`, and null has "
                f"no members; leave out what failed: `jobs.{name}.outputs.filter(o, o != null)`"
            )
    return ""


def explain(message: str) -> str:
    """CEL's message, in our words where they are clearer."""
    message = message.split(" [", 1)[0] if message.endswith("]") else message
    message = message.replace(REWRITE, "replace").replace(SORTED, SORT_BY)
    if found := MISSING_KEY.search(message):
        member = found.group(1)
        return f"there is no member `{member}`{file_hint('x', member) if member in FILE_WORDS else ''}"
    if found := NO_OVERLOAD.search(message):
        return no_overload(found.group(1))
    if "Iteration budget exceeded" in message:
        return "it goes over more than 10,000 elements; do this in a job"
    if "SELECT to non-message" in message:
        return NO_MEMBERS
    return re.sub(r"^[A-Z_]+: ", "", message)


def syntax_error(original_offset: Callable[[int], int], text: str, message: str) -> ExpressionError:
    """The first complaint of CEL's, with its place in the text as it was written."""
    complaints = list(ERROR_LINE.finditer(message))
    found = next((each for each in complaints if not is_allowed(each.group(3))), complaints[0] if complaints else None)
    if found is None:
        return ExpressionError(explain(message))
    line, column, sentence = int(found.group(1)), int(found.group(2)), found.group(3)
    lines = text.splitlines(keepends=True)[: line - 1] if line < 1_000_000 else []
    offset = original_offset(min(len(text), sum(map(len, lines)) + max(0, column - 1)))
    is_grammar = not lines and sentence.startswith("Syntax error")
    hint = operator_hint(text, min(len(text), max(0, column - 1))) if is_grammar else ""
    return ExpressionError(shorten(sentence.removesuffix(" [INVALID_ARGUMENT]")) + hint, offset)


def shorten(sentence: str) -> str:
    if found := NO_FUNCTION.search(sentence):
        return f"there is no function or name `{found.group(1)}`{function_hint(found.group(1))}"
    if found := WRONG_KINDS.search(sentence):
        sign, kinds = found.groups()
        return no_overload(f"{sign}({kinds})") + choice_hint(sign)
    if found := NO_SIGN.search(sentence):
        return f"`{found.group(1)}` means nothing here"
    if "expecting {" in sentence:
        what = sentence.split("'")[1] if "'" in sentence else ""
        return "the expression ends too early" if what == "<EOF>" else f"`{what}` is not expected here"
    return sentence.removeprefix("Syntax error: ").replace("<EOF>", "the end")


@lru_cache(maxsize=CHECKERS_MAX)
def checker(roots: frozenset[str]) -> Any:
    """An environment that declares exactly these names. Creating one is slow, and few sets of names are in use."""
    return cel.NewEnv(variables=dict.fromkeys(roots, cel.Type.DYN), extensions=_extensions())


@lru_cache(maxsize=COMPILED_MAX)
def flaw(text: str) -> ExpressionError | None:
    """What is wrong with an expression, from its text alone: syntax, functions, types of constants."""
    try:
        found = compile_expression(text)
    except ExpressionError as error:
        return error
    if found.path:
        return None
    scanned = scan(text)
    for_library = cel_source(scanned.text)
    try:
        checker(frozenset(name.split(".", 1)[0] for name in found.names)).compile(for_library.text)
    except RuntimeError as error:
        complaints = ERROR_LINE.findall(str(error))
        if not complaints or not all(is_allowed(sentence) for _, _, sentence in complaints):
            return syntax_error(original_place(scanned, for_library), for_library.text, str(error))
    return None


def is_allowed(complaint: str) -> bool:
    """Accept what the checker refuses but evaluation supports: `? :` with two types, and comparisons of mixed
    numbers."""
    found = WRONG_KINDS.search(complaint)
    if found is None:
        return "'_?_:_'" in complaint
    kinds = {kind.strip() for kind in found.group(2).split(",")}
    return found.group(1) == "_?_:_" or (found.group(1) in COMPARISONS and kinds <= NUMERIC)
