"""Looks names up through nested environments, from the inside outwards.

A declared variable without a value hides one of the same name further out."""

from collections.abc import Iterator
from typing import Final

from mendflow.core.engine.state import Case, Env
from mendflow.core.expressions.cel_functions import COMPLETED_END, FAILED_END, SKIPPED_END
from mendflow.core.model.values import Value

NO_VARIABLES: Final = frozenset("@#%")
"""Prefix of the names under which partner links and the like are stored among variables."""


class NameLookup:
    """Looks names up from one environment outwards. Remembers whether one was missing."""

    __slots__ = ("case", "env", "envs", "links", "missing")

    def __init__(self, case: Case, env: int, links: dict[str, bool] | None = None) -> None:
        self.case = case
        self.envs = case.envs
        self.env = env
        self.links = links
        self.missing = False

    def __call__(self, name: str) -> Value:
        envs, at = self.envs, self.env
        if name.startswith("jobs."):
            key = name[5:]
            while at:
                env = envs[at]
                if key in env.results:
                    return env.results[key]
                at = env.parent
        elif name.startswith("JOBS."):
            return self.end_of(name[5:])
        elif self.links is not None and name.startswith("links."):
            if name[6:] in self.links:
                return self.links[name[6:]]
        else:
            while at:
                env = envs[at]
                if name in env.variables:
                    return env.variables[name]
                at = 0 if declares(self.case, env, name) else env.parent
        self.missing = True
        raise KeyError(name, self.known_names(name))

    def end_of(self, key: str) -> str:
        """How an activity ended that is over. What neither completed nor failed was skipped."""
        at = self.env
        while at:
            env = self.envs[at]
            if env.ends is not None and key in env.ends:
                return env.ends[key]
            if key in env.results:
                # A failed item that the flow was told to go on after has a result, and a scope around it completed.
                return FAILED_END if env.results[key].get("failed") else COMPLETED_END
            at = env.parent
        return SKIPPED_END

    def values_in_sight(self) -> Iterator[dict[str, Value]]:
        """The variables, and what items have left."""
        at = self.env
        while at:
            env = self.envs[at]
            yield env.variables
            yield {**env.results}
            at = env.parent

    def known_names(self, name: str) -> list[str]:
        """All known names, for suggestions."""
        found: list[str] = []
        at = self.env
        while at:
            env = self.envs[at]
            known = [f"jobs.{each}" for each in env.results] if name.startswith("jobs.") else env.variables
            found.extend(each for each in known if each[:1] not in NO_VARIABLES)
            at = env.parent
        return found[:1000]


def declares(case: Case, env: Env, name: str) -> bool:
    """Whether a variable is declared here, even if it has no value yet."""
    return env.node >= 0 and name in case.plan.nodes[env.node].types


def holder_of(case: Case, env: int, name: str) -> Env:
    """The environment of a variable: the nearest that has one of that name, else the current one."""
    at = env
    while at:
        found = case.envs[at]
        if name in found.variables or declares(case, found, name):
            return found
        at = found.parent
    return case.envs[env]
