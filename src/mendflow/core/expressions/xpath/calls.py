"""A call of a function within an expression."""

from collections.abc import Iterable

from mendflow.core.expressions.xpath.functions import Function
from mendflow.core.expressions.xpath.run import Focus
from mendflow.core.expressions.xpath.terms import Term
from mendflow.core.expressions.xpath.values import XValue


class Call(Term, frozen=True):
    name: str
    function: Function
    arguments: tuple[Term, ...]

    def inner(self) -> Iterable[Term]:
        return self.arguments

    @property
    def positional(self) -> bool:
        return self.function.positional or any(term.positional for term in self.arguments)

    def value(self, focus: Focus) -> XValue:
        return self.function.work(focus, [argument.value(focus) for argument in self.arguments])
