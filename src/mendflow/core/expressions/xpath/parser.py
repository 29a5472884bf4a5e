"""Parses tokens to terms by operator precedence. Prefixes and functions are resolved here, so that an unknown one is an
error before anything is evaluated."""

from collections.abc import Mapping
from typing import Final, NoReturn

from mendflow.core.expressions.xpath.axes import AXES
from mendflow.core.expressions.xpath.calls import CallTerm
from mendflow.core.expressions.xpath.evaluation import XPathError
from mendflow.core.expressions.xpath.flow_functions import EXECUTABLE, FUNCTIONS, PROPERTY, TRANSFORM
from mendflow.core.expressions.xpath.functions import CORE, Function
from mendflow.core.expressions.xpath.lexer import XPathToken, tokenize
from mendflow.core.expressions.xpath.paths import FilterTerm, KindTest, LocationPath, LocationStep, NameTest, UnionTerm
from mendflow.core.expressions.xpath.predicates import Predicate, predicate_of
from mendflow.core.expressions.xpath.terms import (
    ArithmeticTerm,
    ComparisonTerm,
    FocusPart,
    LogicTerm,
    NegationTerm,
    NumberTerm,
    StringTerm,
    Term,
    VariableTerm,
)
from mendflow.core.xml.tree import XML_NAMESPACE, name_of

NESTING_MAX: Final = 30
"""How deep parentheses, predicates and calls may stand in each other."""

STRENGTH: Final = {
    "or": 0,
    "and": 1,
    **dict.fromkeys(("=", "!="), 2),
    **dict.fromkeys(("<", "<=", ">", ">="), 3),
    **dict.fromkeys(("+", "-"), 4),
    **dict.fromkeys(("*", "div", "mod"), 5),
}
NODE_KINDS: Final = frozenset({"comment", "node", "processing-instruction", "text"})
ANYTHING: Final = LocationStep("descendant-or-self", KindTest("node"))


def parse(text: str, namespaces: Mapping[str, str]) -> Term:
    """The expression, or an XPathError with the place of what is wrong in it."""
    return _Parser(tokenize(text), {"xml": XML_NAMESPACE, **namespaces}).whole()


class _Parser:
    def __init__(self, words: list[XPathToken], namespaces: Mapping[str, str]) -> None:
        self._words, self._namespaces = words, namespaces
        self._at = self._nesting = 0

    def whole(self) -> Term:
        found = self._expression()
        if self._now.kind != "end":
            self._wrong(f"`{self._now.text:.40}` stands behind the end of the expression")
        return found

    @property
    def _now(self) -> XPathToken:
        return self._words[self._at]

    @property
    def _next(self) -> XPathToken:
        return self._words[min(self._at + 1, len(self._words) - 1)]

    def _advance(self) -> XPathToken:
        self._at += 1
        return self._words[self._at - 1]

    def _is(self, text: str, kind: str = "") -> bool:
        return self._now.text == text and self._now.kind in ((kind,) if kind else ("sign", "operator"))

    def _take(self, text: str) -> bool:
        if self._is(text):
            self._at += 1
            return True
        return False

    def _demand(self, text: str) -> None:
        if not self._take(text):
            self._wrong(f"`{text}` is missing")

    def _wrong(self, message: str, at: XPathToken | None = None) -> NoReturn:
        raise XPathError(message, (at or self._now).offset)

    def _expression(self, least: int = 0) -> Term:
        """All that operators of at least this strength join."""
        self._nesting += least == 0
        if self._nesting > NESTING_MAX:
            self._wrong(f"it is nested deeper than {NESTING_MAX} levels")
        left = self._unary()
        while (strength := self._strength()) >= least:
            rest: list[tuple[str, Term]] = []
            while self._strength() == strength:
                rest.append((self._advance().text, self._expression(strength + 1)))
            left = _join_operands(strength, left, rest)
        self._nesting -= least == 0
        return left

    def _strength(self) -> int:
        return STRENGTH.get(self._now.text, -1) if self._now.kind == "operator" else -1

    def _unary(self) -> Term:
        signs = 0
        while self._take("-"):
            signs += 1
        found = self._union()
        if not signs:
            return found
        return NegationTerm(found) if signs % 2 else NegationTerm(NegationTerm(found))

    def _union(self) -> Term:
        parts = [self._path()]
        while self._take("|"):
            parts.append(self._path())
        return parts[0] if len(parts) == 1 else UnionTerm(tuple(parts))

    def _path(self) -> Term:
        if self._begins_primary():
            return self._from_primary()
        absolute = self._is("/") or self._is("//")
        steps: list[LocationStep] = []
        if self._take("/"):
            if not self._begins_step():
                return LocationPath(None, True, ())
        elif self._take("//"):
            steps.append(ANYTHING)
        steps.append(self._step())
        return LocationPath(None, absolute, self._more_steps(steps))

    def _from_primary(self) -> Term:
        start = self._primary()
        if predicates := self._predicates():
            start = FilterTerm(start, predicates)
        if not (self._is("/") or self._is("//")):
            return start
        return LocationPath(start, False, self._more_steps([]))

    def _more_steps(self, steps: list[LocationStep]) -> tuple[LocationStep, ...]:
        while self._is("/") or self._is("//"):
            if self._advance().text == "//":
                steps.append(ANYTHING)
            steps.append(self._step())
        return _shorten_steps(steps)

    def _begins_primary(self) -> bool:
        if self._now.kind in ("number", "literal", "variable") or self._is("("):
            return True
        called = self._now.kind == "name" and self._next.text == "(" and self._next.kind == "sign"
        return called and self._now.text not in NODE_KINDS

    def _begins_step(self) -> bool:
        return self._now.kind == "name" or any(map(self._is, (".", "..", "@")))

    def _step(self) -> LocationStep:
        if self._take("."):
            return LocationStep("self", KindTest("node"))
        if self._take(".."):
            return LocationStep("parent", KindTest("node"))
        axis = "child"
        if self._take("@"):
            axis = "attribute"
        elif self._next.text == "::" and self._now.kind == "name":
            if self._now.text not in AXES:
                self._wrong(f"`{self._now.text:.40}` is no axis; there are {', '.join(AXES)}")
            axis = self._advance().text
            self._advance()
        return LocationStep(axis, self._test(), self._predicates())

    def _test(self) -> NameTest | KindTest:
        if self._now.kind != "name":
            self._wrong(
                "a name is missing" if self._now.kind == "end" else f"`{self._now.text:.40}` is no step of a path"
            )
        word = self._advance()
        if self._is("(") and word.text in NODE_KINDS:
            return self._kind_test(word)
        if word.text == "*":
            return NameTest(None, None)
        ns, local = self._name(word) if ":" in word.text else ("", word.text)
        return NameTest(ns, None if local == "*" else local)

    def _kind_test(self, word: XPathToken) -> KindTest:
        self._demand("(")
        target = None
        if word.text == "processing-instruction" and self._now.kind == "literal":
            target = self._advance().text[1:-1]
        self._demand(")")
        return KindTest(word.text, target)

    def _predicates(self) -> tuple[Predicate, ...]:
        found = []
        while self._take("["):
            found.append(predicate_of(self._expression()))
            self._demand("]")
        return tuple(found)

    def _primary(self) -> Term:
        word = self._advance()
        match word.kind:
            case "number":
                return NumberTerm(float(word.text))
            case "literal":
                return StringTerm(word.text[1:-1])
            case "variable":
                if ":" in word.text:
                    self._wrong("names of variables have no prefix", word)
                return VariableTerm(word.text[1:].strip())
            case "name":
                return self._call(word)
        found = self._expression()
        self._demand(")")
        return found

    def _call(self, word: XPathToken) -> Term:
        function = self._function(word)
        arguments: list[Term] = []
        self._demand("(")
        while not self._take(")"):
            if arguments:
                self._demand(",")
            arguments.append(self._expression())
        if not function.least <= len(arguments) <= function.most:
            self._wrong(f"{word.text}() takes {_many(function)}; here it has {len(arguments)}", word)
        local = word.text.rpartition(":")[2]
        if function is FUNCTIONS.get(local):
            arguments = self._with_names(local, arguments, word)
        return CallTerm(local, function, tuple(arguments))

    def _function(self, word: XPathToken) -> Function:
        if ":" not in word.text:
            found = CORE.get(word.text)
        else:
            ns, local = self._name(word)
            found = FUNCTIONS.get(local) if ns == EXECUTABLE else None
        if found is None:
            self._wrong(f"there is no function {word.text:.80}()", word)
        return found

    def _with_names(self, function: str, arguments: list[Term], word: XPathToken) -> list[Term]:
        """Names that stand in texts get their namespaces, since only here the prefixes are known."""
        if not isinstance(arguments[0], StringTerm) or (
            function == PROPERTY and not isinstance(arguments[1], StringTerm)
        ):
            self._wrong(f"{function}() takes names as texts in quotation marks", word)
        names = (1,) if function == PROPERTY else range(2, len(arguments), 2)
        assert function in (PROPERTY, TRANSFORM)
        for at in names:
            if isinstance(quoted := arguments[at], StringTerm):
                arguments[at] = StringTerm(self._expanded(quoted.text.strip(), word))
        return arguments

    def _name(self, word: XPathToken) -> tuple[str, str]:
        prefix, _, local = word.text.partition(":")
        if prefix not in self._namespaces:
            self._wrong(f"the prefix `{prefix:.40}` has no meaning here; declare it with xmlns:{prefix:.40}", word)
        return self._namespaces[prefix], local

    def _expanded(self, name: str, word: XPathToken) -> str:
        if ":" not in name:
            return name
        return name_of(*self._name(XPathToken("name", name, word.offset)))


def _join_operands(strength: int, first: Term, rest: list[tuple[str, Term]]) -> Term:
    if strength <= STRENGTH["and"]:
        return LogicTerm(rest[0][0], (first, *(term for _, term in rest)))
    return ComparisonTerm(first, tuple(rest)) if strength < STRENGTH["+"] else ArithmeticTerm(first, tuple(rest))


def _shorten_steps(steps: list[LocationStep]) -> tuple[LocationStep, ...]:
    """`//name` as one step down, where no predicate counts: the same nodes without a look at each in between."""
    found: list[LocationStep] = []
    for step in steps:
        if found and found[-1] is ANYTHING and step.axis == "child" and not any(map(_counts, step.predicates)):
            found[-1] = LocationStep("descendant", step.test, step.predicates)
        else:
            found.append(step)
    return tuple(found)


def _counts(predicate: Predicate) -> bool:
    """Whether it may ask for a position: by a number, or by position() and last()."""
    asked = predicate.asked
    if isinstance(asked, CallTerm) and asked.function.gives in ("number", "any"):
        return True
    if isinstance(asked, NumberTerm | NegationTerm | ArithmeticTerm | VariableTerm):
        return True
    return bool(asked.asks & (FocusPart.POSITION | FocusPart.SIZE))


def _many(function: Function) -> str:
    if function.least == function.most:
        return {0: "no argument", 1: "one argument"}.get(function.least, f"{function.least} arguments")
    return f"{function.least} to {function.most} arguments"
