"""Conditions that are evaluated many times on the same data: each path is read once, and most conditions never need the
library.

`KnownValues` is the data of one moment. It caches values by path name, for the next condition and for explanations. An
error is not raised: it is the reason why a condition does not hold."""

from functools import lru_cache
from typing import Final, NamedTuple

from mendflow.core.expressions.cel import CompiledExpression, flaw
from mendflow.core.expressions.cel_evaluator import (
    EXACT_MAX,
    CelError,
    Evaluator,
    NeedsLibrary,
    evaluator_of,
)
from mendflow.core.expressions.cel_parser import (
    Constant,
    HasTest,
    ListLiteral,
    MemberPath,
    Operator,
    Tree,
    conjuncts,
    parse,
    parts_in,
    path_of,
    paths_in,
)
from mendflow.core.expressions.contract import ExpressionError, Lookup
from mendflow.core.expressions.division import CEL_INT_MAX, INT_MIN
from mendflow.core.expressions.file_parts import file_part
from mendflow.core.expressions.kinds import kind_of
from mendflow.core.expressions.scanner import MACROS, RESERVED, scan, tokenize
from mendflow.core.expressions.work_budget import WORK
from mendflow.core.model.values import Value, is_spilled

CONDITION_CHARS_MAX: Final = 4000
LOOPS_MAX: Final = 2
"""How deep `exists` and its like may stand in each other."""

CACHED_MAX: Final = 30_000
TOGETHER_MAX: Final = 30_000
"""The work that all conditions of one moment may take: a tree may have thousands of them, and others wait for it."""

TOO_MUCH_TOGETHER: Final = (
    f"the conditions before it took too much work: all of them together may take {TOGETHER_MAX:,} units; write cheaper"
    " conditions, or give them less data"
)
SHOWN_CHARS_MAX: Final = 200
SHOWN_PARTS_MAX: Final = 5
HOLDS: Final = (True, "")
FAILS: Final = (False, "")


REVERSED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


class PathTest(NamedTuple):
    """A necessary condition: the path equals one of the constants, or compares so with one."""

    path: MemberPath
    do: str
    constants: tuple[Value, ...]


class KnownValues:
    """The data of one moment: values that were read so far, by path name."""

    __slots__ = ("lookup", "read", "shown", "values", "work")

    def __init__(self, lookup: Lookup) -> None:
        self.lookup = lookup
        self.values: dict[str, Value] = {}
        self.read: set[str] = set()
        self.shown: dict[str, Value] = {}
        self.work = 0
        """What all conditions have cost on this data, as far as the library evaluated them."""

    def look(self, path: MemberPath) -> None:
        """Read a path. Raises NeedsLibrary for a value that only the library can judge: one that was spilled, or a
        number outside its integers."""
        try:
            value = self.lookup(path.root)
        except KeyError:
            self.read.add(path.name)
            return
        for member in path.members:
            if type(value) is not dict:
                self.read.add(path.name)
                return
            if "$spilled" in value and is_spilled(value):
                raise NeedsLibrary
            if file_part(value, member) is not None:
                raise NeedsLibrary
            if member not in value:
                self.read.add(path.name)
                return
            value = value[member]
        if type(value) is int:
            if not INT_MIN <= value <= CEL_INT_MAX:
                raise NeedsLibrary
        elif type(value) is dict and is_spilled(value):
            raise NeedsLibrary
        self.read.add(path.name)
        self.values[path.name] = value

    def show(self, names: tuple[str, ...]) -> dict[str, Value]:
        """The values of these names as far as they are known, bounded."""
        shown = self.shown
        found: dict[str, Value] = {}
        for name in names:
            if name in shown:
                found[name] = shown[name]
            elif name in self.values:
                found[name] = shown[name] = shorten_value(self.values[name])
        return found


class Condition:
    """A condition. `tests` are necessary conditions: of a row of very many rules only these are read. What evaluates it
    is made when it is first asked; the library's program, which takes longest, only where that needs it. `names` are
    what it reads. One with a syntax error never holds, and says why."""

    __slots__ = ("_broken", "_library", "_names", "_needs", "_run", "_tree", "tests", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._broken = ""
        self._library: CompiledExpression | None = None
        self._run: Evaluator | None = None
        self._needs: tuple[tuple[str, MemberPath], ...] | None = None
        self._names: tuple[str, ...] = ()
        self._tree = parse(text)
        self.tests: tuple[PathTest, ...] = tests_of(self._tree) if self._tree is not None else tests_of_parts(text)

    @property
    def names(self) -> tuple[str, ...]:
        if self._needs is None:
            self._prepare()
        return self._names

    def _prepare(self) -> tuple[tuple[str, MemberPath], ...]:
        shown = self._for_library() if self._tree is None else self._for_us(self._tree)
        self._names = tuple(dict.fromkeys(path.name for path in shown))
        assert self._needs is not None
        return self._needs

    def _for_library(self) -> list[MemberPath]:
        try:
            found = sorted(scan(self.text).references, key=lambda each: len(each.members))
        except ExpressionError as error:
            self._broken = error.message
            found = []
        return self._needing([path_of(name, members) for name, members, _ in found])

    def _for_us(self, tree: Tree) -> list[MemberPath]:
        self._run = evaluator_of(tree)
        needed = self._needing(paths_in(tree))
        parents = {each.parent.name for each in parts_in(tree) if isinstance(each, HasTest)}
        asked = {each.name for each in parts_in(tree) if isinstance(each, MemberPath)}
        return [each for each in needed if each.name in asked or each.name not in parents]

    def _needing(self, paths: list[MemberPath]) -> list[MemberPath]:
        self._needs = tuple((path.name, path) for path in paths)
        return paths

    def holds(self, known: KnownValues) -> tuple[bool, str]:
        """Whether it holds, and the error if that is why not."""
        needs = self._needs
        if needs is None:
            needs = self._prepare()
        read, run = known.read, self._run
        try:
            for name, path in needs:
                if name not in read:
                    known.look(path)
            if run is None:
                return self._evaluate(known)
            result = run(known.values)
            if result is True:
                return HOLDS
            if result is False:
                return FAILS
        except NeedsLibrary:
            return self._evaluate(known)
        except CelError as error:
            return False, f"`{self.text:.80}`: {error.args[0]}"
        except KeyError as error:
            return False, f"`{self.text:.80}`: there is no `{error.args[0]}`"
        return self._verdict_on(result)

    def _evaluate(self, known: KnownValues) -> tuple[bool, str]:
        if self._broken:
            return False, self._broken
        if known.work >= TOGETHER_MAX:
            return False, f"`{self.text:.80}`: {TOO_MUCH_TOGETHER}"
        if self._library is None:
            try:
                self._library = CompiledExpression(self.text)
            except ExpressionError as error:
                self._broken = error.message
                return False, self._broken
        try:
            before = WORK.spent_in_all
            try:
                with WORK.of_at_most(TOGETHER_MAX - known.work):
                    return self._verdict_on(self._library.evaluate(known.lookup))
            finally:
                known.work += WORK.spent_in_all - before
        except ExpressionError as error:
            return False, error.message

    def _verdict_on(self, result: Value) -> tuple[bool, str]:
        if result is True or result is False:
            return HOLDS if result else FAILS
        return False, f"`{self.text:.80}` gives {kind_of(result)}; a condition must give true or false"


@lru_cache(maxsize=CACHED_MAX)
def condition_of(text: str) -> Condition:
    """The condition of a text, compiled once: the next version of a rule set shares nearly all of them."""
    return Condition(text)


def tests_of(tree: Tree) -> tuple[PathTest, ...]:
    """The conjuncts that compare a path with constants. A number beyond those that compare exactly is left out."""
    found = []
    for each in conjuncts(tree):
        match each:
            case Operator("==", (MemberPath() as path, Constant(value))) | Operator(
                "==", (Constant(value), MemberPath() as path)
            ):
                found.append(PathTest(path, "==", (value,)))
            case Operator("in", (MemberPath() as path, ListLiteral(parts))) if all(
                isinstance(part, Constant) for part in parts
            ):
                found.append(PathTest(path, "==", tuple(part.value for part in parts if isinstance(part, Constant))))
            case Operator("<" | "<=" | ">" | ">=" as do, (MemberPath() as path, Constant(int() | float() as value))):
                found.append(PathTest(path, do, (value,)))
            case Operator("<" | "<=" | ">" | ">=" as do, (Constant(int() | float() as value), MemberPath() as path)):
                found.append(PathTest(path, REVERSED[do], (value,)))
    return tuple(test for test in found if all(map(compares_exactly, test.constants)))


def tests_of_parts(text: str) -> tuple[PathTest, ...]:
    """The same of a condition that only the library can evaluate: of those conjuncts that we can read."""
    found: list[PathTest] = []
    for part in _conjunct_texts(text):
        if (tree := parse(part)) is not None:
            found += tests_of(tree)
    return tuple(found)


def _conjunct_texts(text: str) -> list[str]:
    """The parts between `&&` outside of all brackets; none if the text is not a conjunction of such."""
    parts, begun, depth, ampersand = list[str](), 0, 0, -1
    for token in tokenize(text):
        if token.kind != "mark":
            continue
        depth += (token.text in "([{") - (token.text in ")]}")
        if not depth and token.text in "|?":
            return []
        if not depth and token.text == "&" and token.start == ampersand:
            parts.append(text[begun : token.start - 1])
            begun = token.end
        ampersand = token.end if token.text == "&" else -1
    return [*parts, text[begun:]] if parts else []


def compares_exactly(value: Value) -> bool:
    return not isinstance(value, int | float) or -EXACT_MAX < value < EXACT_MAX


@lru_cache(maxsize=CACHED_MAX)
def condition_flaw(text: str) -> ExpressionError | None:
    """Why a condition is refused: its text is invalid, it may cost too much, or it is not a boolean."""
    if len(text) > CONDITION_CHARS_MAX:
        return ExpressionError(f"the condition is {len(text)} characters long; at most {CONDITION_CHARS_MAX} are taken")
    tree = parse(text)
    if tree is not None and only_compares(tree, text):
        return None
    if (found := flaw(text)) is not None:
        return found
    if loops_in(text) > LOOPS_MAX:
        return ExpressionError(
            f"it goes over lists inside lists more than {LOOPS_MAX} deep, which may take too long; "
            "let a registered source give the answer"
        )
    if isinstance(tree, Constant) and not isinstance(tree.value, bool):
        return ExpressionError(f"it always gives {kind_of(tree.value)}; a condition must give true or false")
    return None


def only_compares(tree: Tree, text: str) -> bool:
    """Whether a condition only compares paths with constants that go with any path, as most searches do. The library
    refuses none of these, so it need not be loaded for the check. Whatever is unusual in the text is left to it."""
    return text.isprintable() and all(map(_is_plain_comparison, conjuncts(tree)))


def _is_plain_comparison(tree: Tree) -> bool:
    match tree:
        case Operator("==" | "!=", (MemberPath(members=members), Constant())):
            return RESERVED.isdisjoint(members)
        case Operator("<" | "<=" | ">" | ">=", (MemberPath(members=members), Constant(int() | float() | str()))):
            return RESERVED.isdisjoint(members)
    return False


def loops_in(text: str) -> int:
    """How deep macros that go over lists stand in each other."""
    tokens = [token for token in tokenize(text) if token.kind != "space"]
    brackets: list[bool] = []
    deepest = 0
    for place, token in enumerate(tokens):
        if token.kind == "mark" and token.text in "([{":
            before = tokens[place - 1].text if place else ""
            brackets.append(token.text == "(" and before in MACROS and place > 1 and tokens[place - 2].text == ".")
            deepest = max(deepest, sum(brackets))
        elif token.kind == "mark" and token.text in ")]}" and brackets:
            brackets.pop()
    return deepest


def shorten_value(value: Value) -> Value:
    """A value as an explanation shows it: short."""
    if isinstance(value, str):
        return value if len(value) <= SHOWN_CHARS_MAX else f"{value[:SHOWN_CHARS_MAX]}..."
    if isinstance(value, list):
        small = len(value) <= SHOWN_PARTS_MAX and not any(isinstance(part, dict | list) for part in value)
        return [shorten_value(part) for part in value] if small else f"a list of {len(value)}"
    if isinstance(value, dict):
        small = len(value) <= SHOWN_PARTS_MAX and not any(isinstance(part, dict | list) for part in value.values())
        return {key: shorten_value(part) for key, part in value.items()} if small else f"a map of {len(value)}"
    return value
