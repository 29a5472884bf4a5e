"""The hub: how a service notifies, or asks, services in higher layers, which it may not import.

A service publishes a fact (`CaseEnded`, `JobMoved`) without knowing who subscribes. Where an answer is needed, it asks
for the provider of a contract (`OrderExecutor`, `Repairs`): there is at most one, and there may be none. Subscribers
and providers register themselves when they are built, so the order of building does not matter."""

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
        """Call all subscribers before this call returns."""
        for listener in self._listeners.get(type(fact), ()):
            listener(fact)

    def provide(self, contract: type[C], provider: C) -> None:
        assert contract not in self._providers, f"{contract.__name__} has a provider already"
        self._providers[contract] = provider

    def provider(self, contract: type[C]) -> C | None:
        """The provider of the contract, if there is one."""
        found: C | None = self._providers.get(contract)
        return found
