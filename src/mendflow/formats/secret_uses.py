"""The secrets that a job uses, as flow files and Python say them: names, each of which becomes an environment variable;
or a map of variables, and of files as `{file: NAME}`."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from mendflow.core.model.secrets import SecretUse, secret_use_flaw, variable_of

SHAPE: Final = (
    "secrets are a list of names, a map of variables, such as `{TOKEN: api-token}`, or of files, such as"
    " `{token.txt: {file: api-token}}`"
)


def uses_of(given: Any) -> Iterator[tuple[SecretUse | None, str]]:
    """Each secret, or what is wrong with it."""
    if isinstance(given, str):
        given = [given]
    if isinstance(given, Mapping):
        for place, named in given.items():
            yield _checked(_use(place, named))
    elif isinstance(given, Sequence):
        for name in given:
            yield _checked(SecretUse(name=name, variable=variable_of(name)) if isinstance(name, str) else None)
    else:
        yield None, SHAPE


def _use(place: object, named: object) -> SecretUse | None:
    if isinstance(place, str) and isinstance(named, str):
        return SecretUse(name=named, variable=place)
    if isinstance(place, str) and isinstance(named, Mapping) and set(named) == {"file"}:
        return SecretUse(name=named["file"], path=place) if isinstance(named["file"], str) else None
    return None


def _checked(use: SecretUse | None) -> tuple[SecretUse | None, str]:
    if use is None:
        return None, SHAPE
    flaw = secret_use_flaw(use)
    return (None, flaw) if flaw else (use, "")


def joined(usual: Sequence[SecretUse], own: Sequence[SecretUse]) -> tuple[SecretUse, ...]:
    """The secrets of the flow's defaults, and those of a job, which take the place of those at the same place."""
    return tuple({use.place: use for use in (*usual, *own)}.values())
