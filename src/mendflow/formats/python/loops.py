"""What `map` and `product` go over: one list, lists side by side, or all combinations of several.

An element is a handle of its own inside the loop, so that it is passed on like any other."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from mendflow.core.expressions import RESERVED
from mendflow.core.model.expr import Expr
from mendflow.core.model.values import Value
from mendflow.formats.names import VARIABLE
from mendflow.formats.python.file_arguments import sources_of
from mendflow.formats.python.handles import Handle, Holds, template_of
from mendflow.formats.python.problems import bad_flow

TAKEN: Final = RESERVED | {"inputs", "index"}
LOOP_OPTIONS: Final = ("max_parallel", "tolerate")
"""Options that may stand beside the lists, because they mean nothing elsewhere."""


class Loop(NamedTuple):
    """The fields of the model's loop that say what it goes over, and the element of each list inside it."""

    fields: dict[str, Any]
    elements: dict[str, Handle]


def loop_over(lists: Mapping[str, Any], owner: object, folder: Path, *, is_zip: bool, single: str = "") -> Loop:
    """A loop over lists by the names of their elements; the element of a `single` list has that name in expressions."""
    found = {name: list_template(name, given, owner, folder) for name, given in lists.items()}
    if len(found) == 1:
        ((name, (template, holds)),) = found.items()
        variable = single or free_variable(name)
        return Loop({"items": template, "variable": variable}, {name: Handle(owner, variable, holds=holds)})
    if is_zip:
        demand_one_length({name: template for name, (template, _) in found.items()})
    variables = {name: free_variable(name) for name in found}
    fields = {"axes": {variables[name]: template for name, (template, _) in found.items()}, "zip": is_zip}
    return Loop(fields, {name: Handle(owner, variables[name], holds=holds) for name, (_, holds) in found.items()})


def named_lists(
    called: str, parameters: Sequence[str], lists: Sequence[Any], named: Mapping[str, Any], is_zip: bool
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The lists by the parameters that their elements are for, and what is the same for all. In a product all that is
    given by name is lists too."""
    if len(lists) > len(parameters):
        raise bad_flow(f"{called}: {len(lists)} lists are given, and it takes {len(parameters)} arguments by position")
    over = dict(zip(parameters, lists, strict=False))
    if is_zip and not lists:
        raise bad_flow(
            f"{called}: map goes over what is given by position, as in map(xs); what is given by name is the same for "
            "all"
        )
    if twice := next((name for name in named if name in over), ""):
        raise bad_flow(f"{called}: `{twice}` is given twice")
    if is_zip:
        return over, dict(named)
    if not over and not named:
        raise bad_flow(f"{called}: a product needs lists, as in product(x=[1, 2], y=[3, 4])")
    return {**over, **named}, {}


def list_template(name: str, given: Any, owner: object, folder: Path) -> tuple[Value, Holds]:
    """A list, or a handle for one, and what its elements are known to be."""
    if isinstance(given, Handle):
        if given._holds == "file":
            raise bad_flow(f"`{given._expression}` is one file, and map goes over a list")
        return template_of(given, owner, "what map goes over"), "file" if given._holds == "files" else ""
    if isinstance(given, (set, frozenset)):
        raise bad_flow(f"`{name}` is a set, which has no order; give sorted(...) of it")
    if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Iterable):
        instead = "; give list(d.items()) or the like" if isinstance(given, Mapping) else ""
        raise bad_flow(f"map goes over a list, or over what a job gave, not over {given!r:.200}{instead}")
    values = list(given)
    if values and all(isinstance(each, Path) for each in values):
        return list(sources_of(values, folder)), "path"
    return template_of(values, owner, "what map goes over"), ""


def demand_one_length(lists: Mapping[str, Value]) -> None:
    sizes = {name: len(each) for name, each in lists.items() if isinstance(each, list)}
    if len(set(sizes.values())) > 1:
        told = ", ".join(f"`{name}` has {size}" for name, size in sizes.items())
        raise bad_flow(f"lists that are zipped must be of one length: {told} elements; product(...) takes all pairs")


def free_variable(name: str) -> str:
    """The name of an element in expressions; a word that means something there gets a mark."""
    return name if VARIABLE.fullmatch(name) and name not in TAKEN else f"{name}_"


def tolerance(given: Any, owner: object) -> dict[str, Any]:
    """A number of iterations, a part of them such as 0.1 or "10 %", or a handle for a number."""
    if given is None:
        return {}
    if isinstance(given, Handle):
        template_of(given, owner, "tolerate")
        return {"tolerate": Expr(given._expression)}
    if isinstance(given, str) and (percent := percent_of(given)) is not None:
        return {"tolerate_percent": percent}
    if isinstance(given, float) and 0 <= given <= 1:
        return {"tolerate_percent": round(given * 100, 9)}
    if isinstance(given, int) and not isinstance(given, bool) and given >= 0:
        return {"tolerate": given}
    raise bad_flow(f'tolerate is a number of iterations, or a part of them such as 0.1 or "10 %", not {given!r:.80}')


def percent_of(text: str) -> float | None:
    try:
        number = float(text.removesuffix("%")) if text.endswith("%") else -1.0
    except ValueError:
        return None
    return number if 0 <= number <= 100 else None


def split_options(given: Mapping[str, Any], parameters: Sequence[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What stands beside the lists: options of the loop, and all else. A parameter of that name comes first."""
    options = {name: value for name, value in given.items() if name in LOOP_OPTIONS and name not in parameters}
    return options, {name: value for name, value in given.items() if name not in options}


PlainTurn = tuple[tuple[Any, ...], dict[str, Any]]
"""The arguments of one iteration by position and by name."""


def in_plain_python(call: Callable[..., Any], turns: Iterable[PlainTurn], tolerate: Any) -> list[Any]:
    """The results of a loop outside of a flow. With `tolerate` a failed iteration gives None, unless too many fail."""
    results, failures = [], []
    for args, kwargs in turns:
        try:
            results.append(call(*args, **kwargs))
        except Exception as error:  # whatever an iteration raises, the others run if that is tolerated
            if tolerate is None:
                raise
            results.append(None)
            failures.append(error)
    allowed = tolerance(tolerate, None)
    most = allowed["tolerate"] if "tolerate" in allowed else len(results) * allowed.get("tolerate_percent", 0) / 100
    if len(failures) > most:
        raise failures[0]
    return results


def plain_iterations(
    lists: Mapping[str, Any], fixed: Mapping[str, Any], positions: int, *, is_zip: bool
) -> Iterator[PlainTurn]:
    """The arguments of each iteration; the elements of so many lists are given by position."""
    named = list(lists)[positions:]
    for values in zip(*lists.values(), strict=True) if is_zip else itertools.product(*lists.values()):
        yield values[:positions], {**dict(zip(named, values[positions:], strict=True)), **fixed}
