"""A call of a function within an expression."""

from collections.abc import Iterable

from mendflow.core.expressions.xpath.functions import Function
from mendflow.core.expressions.xpath.run import Focus
from mendflow.core.expressions.xpath.terms import Focal, Term
from mendflow.core.expressions.xpath.values import XValue


class Call(Term, frozen=True):
    name: str
    function: Function
    arguments: tuple[Term, ...]

    def inner(self) -> Iterable[Term]:
        return self.arguments

    def asked_of_focus(self) -> Focal:
        implied = Focal.NODE if len(self.arguments) < self.function.most == 1 else Focal(0)
        return Term.asked_of_focus(self) | self.function.asks | implied

    def value(self, focus: Focus) -> XValue:
        return self.function.work(focus, [argument.value(focus) for argument in self.arguments])
