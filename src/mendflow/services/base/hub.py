"""The hub: how a service tells, or asks, those that stand above it, which it may not import.

A service publishes a fact (`CaseEnded`, `JobMoved`) without knowing who wants to hear it. Where an answer is needed, it
asks for whoever provides a contract (`OrderExecutor`, `Repairs`): at most one does, and there may be nobody.
Subscribers and providers register themselves when they are built, so the order of building decides nothing."""

from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F")
C = TypeVar("C")


class Hub:
    def __init__(self) -> None:
        self._listeners: dict[type, list[Callable[[Any], None]]] = {}
        self._providers: dict[type, Any] = {}

    def subscribe(self, fact: type[F], listener: Callable[[F], None]) -> None:
        """Call the listener with every fact of this type, after those that subscribed before."""
        self._listeners.setdefault(fact, []).append(listener)

    def publish(self, fact: object) -> None:
        """Tell everybody who subscribed, before this call returns."""
        for listener in self._listeners.get(type(fact), ()):
            listener(fact)

    def provide(self, contract: type[C], provider: C) -> None:
        assert contract not in self._providers, f"{contract.__name__} has a provider already"
        self._providers[contract] = provider

    def provider(self, contract: type[C]) -> C | None:
        """Who fulfils the contract, if anybody does."""
        found: C | None = self._providers.get(contract)
        return found
