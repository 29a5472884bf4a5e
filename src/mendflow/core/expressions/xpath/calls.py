"""A call of a function within an expression."""

from collections.abc import Iterable

from mendflow.core.expressions.xpath.evaluation import Focus
from mendflow.core.expressions.xpath.functions import Function
from mendflow.core.expressions.xpath.terms import FocusPart, Term
from mendflow.core.expressions.xpath.values import XValue


class CallTerm(Term, frozen=True):
    name: str
    function: Function
    arguments: tuple[Term, ...]

    def inner(self) -> Iterable[Term]:
        return self.arguments

    def asked_of_focus(self) -> FocusPart:
        implied = FocusPart.NODE if len(self.arguments) < self.function.most == 1 else FocusPart(0)
        return Term.asked_of_focus(self) | self.function.asks | implied

    def value(self, focus: Focus) -> XValue:
        return self.function.work(focus, [argument.value(focus) for argument in self.arguments])
