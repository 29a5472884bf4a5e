"""What a job and a flow have in common as steps of a flow: each can be done once, for each element of lists that go
side by side, or for each combination of elements."""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, NoReturn, ParamSpec, TypeVar

from mendflow.formats.python.builder import FlowBuilder, current_builder
from mendflow.formats.python.handles import Handle
from mendflow.formats.python.hints import JOB_HINTS, argument_error
from mendflow.formats.python.loops import Loop, in_plain_python, loop_over, named_lists, plain_iterations, split_options
from mendflow.formats.python.options import KNOWN
from mendflow.formats.python.problems import bad_flow

P = ParamSpec("P")
R = TypeVar("R")


def takes_anything(*_: Any, **__: Any) -> None:
    """How a function is called that does not say it."""


class StepFunction(ABC, Generic[P, R]):
    """A function that is a step of a flow: a job, or a flow of its own. It can be done once, or for each element."""

    function: Callable[P, R]
    name: str
    _options: Mapping[str, Any]

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        building = current_builder.get()
        if building is None:
            return self._plainly(*args, **kwargs)
        handle: Any = building.with_problems_collected(self.name, lambda: self._once(building, args, kwargs))
        return handle  # type: ignore[no-any-return]  # stands for the result while the flow is being built

    def map(self, *lists: Any, **fixed: Any) -> list[R]:
        """Run once per element of a list, or of a handle for one. The elements of the lists, which go side by side, are
        the first arguments; `fixed` are others. Returns the list of results. `max_parallel` says how many run at a
        time, `tolerate` how many may fail, or what part of them."""
        return self._each(lists, fixed, is_zip=True)

    def product(self, *lists: Any, **named: Any) -> list[R]:
        """Run once per combination of the lists' elements, those of the first list changing slowest."""
        return self._each(lists, named, is_zip=False)

    def _each(self, lists: tuple[Any, ...], named: Mapping[str, Any], *, is_zip: bool) -> list[R]:
        options, others = split_options(named, self._parameters())
        building = current_builder.get()
        if building is None:
            over, fixed = named_lists(self.name, self._positions(len(lists)), lists, others, is_zip)
            turns = plain_iterations(over, fixed, len(lists), is_zip=is_zip)
            return in_plain_python(self._plainly, turns, {**self._options, **options}.get("tolerate"))
        handle: Any = building.with_problems_collected(
            self.name, lambda: self._loop(building, lists, others, {**self._options, **options}, is_zip=is_zip)
        )
        return handle  # type: ignore[no-any-return]  # as above

    def _loop(
        self,
        building: FlowBuilder,
        lists: tuple[Any, ...],
        named: Mapping[str, Any],
        options: Mapping[str, Any],
        *,
        is_zip: bool,
    ) -> Handle:
        over, fixed = named_lists(self.name, self._positions(len(lists)), lists, named, is_zip)
        single = "item" if lists and is_zip else ""
        loop = loop_over(over, building, building.folder, is_zip=is_zip, single=single)
        by_position = [loop.elements[name] for name in list(over)[: len(lists)]]
        by_name = {name: element for name, element in loop.elements.items() if name not in list(over)[: len(lists)]}
        return self._for_each(building, options, loop, by_position, {**by_name, **fixed})

    def _parameters(self) -> list[str]:
        named = self._signature().parameters.items()
        return [name for name, each in named if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)]

    def _positions(self, wanted: int) -> list[str]:
        """The names of arguments that are given by position. Where the function takes any number, each further one has
        a name with a number."""
        found = []
        for name, each in self._signature().parameters.items():
            if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD):
                found.append(name)
            elif each.kind == each.VAR_POSITIONAL:
                found += [f"{name}{number}" for number in range(1, wanted - len(found) + 1)]
        return found

    def _signature(self) -> inspect.Signature:
        """How the function is called; some of Python's own do not say it, and take anything."""
        try:
            return inspect.signature(self.function)
        except ValueError:
            return inspect.signature(takes_anything)

    def _bound(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments by parameter, as far as they are given."""
        try:
            return dict(self._signature().bind(*args, **kwargs).arguments)
        except TypeError as error:
            hint = argument_error(self.name, kwargs, KNOWN, self._parameters())
            raise bad_flow(f"{self.name}(): {error}{hint}") from None

    @abstractmethod
    def _plainly(self, *args: Any, **kwargs: Any) -> R:
        """Run the function itself, outside of a flow."""

    @abstractmethod
    def _once(self, building: FlowBuilder, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Handle:
        """Add one step to the flow."""

    @abstractmethod
    def _for_each(
        self,
        building: FlowBuilder,
        options: Mapping[str, Any],
        loop: Loop,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> Handle:
        """Add a loop of such steps, whose arguments have the elements among them."""

    def __getattr__(self, name: str) -> NoReturn:
        hint = JOB_HINTS.get(name, "")
        if not hint:
            raise AttributeError(f"`{type(self).__name__}` object has no attribute `{name}`")
        told = f"`{self.__dict__.get('name', 'a job')}` has no `.{name}`: {hint}"
        told = told.replace("{name}", str(self.__dict__.get("name", "job")))
        if current_builder.get() is None:
            # With an object Python would suggest one of its own attributes, behind what we say.
            raise AttributeError(told, name=name, obj=None)
        raise bad_flow(told)
