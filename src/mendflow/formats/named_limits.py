"""The named limits that a job uses, as flow files and Python say them: a map of how much of each, or a list of names,
one of each."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Final

from msgspec.structs import asdict

from mendflow.core.model.jobs import Limits
from mendflow.core.model.named_limits import NamedLimits, limit_amount_flaw, limit_name_flaw

ALIKE: Final = 0.8
"""A name that is so near to the key of another limit is probably that key, misspelt."""


def named_limit_flaw(name: object, amount: object, keys: Iterable[str]) -> str:
    """What is wrong with a named limit of a job. `keys` are those of other limits, which it must not be taken for."""
    if not isinstance(name, str):
        return f"the name of a limit is a text, not {name!r:.50}"
    if meant := get_close_matches(name.lower().replace("_", "-")[:100], list(keys), 1, ALIKE):
        return f"`{name:.100}` is too near to the key `{meant[0]}`; write that, or choose another name for the limit"
    return limit_name_flaw(name) or limit_amount_flaw(name, amount)


def in_order(amounts: Mapping[str, int]) -> NamedLimits:
    """Sorted, so that equal ones are equal, and without those of which nothing is used."""
    return tuple(sorted((name, amount) for name, amount in amounts.items() if amount))


def with_defaults(own: Limits, own_named: Mapping[str, int], usual: Limits) -> Limits:
    """The limits of a job, and of the flow's defaults those that it does not state itself. It states 0 of a named limit
    to use none."""
    empty = Limits()
    fields = {
        name: getattr(own, name) if getattr(own, name) != getattr(empty, name) else getattr(usual, name)
        for name in asdict(empty)
    }
    return Limits(**{**fields, "named": in_order({**dict(usual.named), **own_named})})
