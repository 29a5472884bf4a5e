"""The hub: how a service notifies, or asks, services in higher layers, which it may not import.

A service publishes a fact (`CaseEnded`, `JobMoved`) without knowing who subscribes. Where it wants an answer, it asks
for the provider of a contract, of which there is at most one. A contract that it cannot do without (`OrderExecutor`)
it needs from the start, and `check` says who needs what nobody provides; any other (`Repairs`) may have no provider.
Subscribers and providers register themselves when they are built, so the order of building does not matter."""

from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F")
C = TypeVar("C")


class Hub:
    def __init__(self) -> None:
        self._listeners: dict[type, list[Callable[[Any], None]]] = {}
        self._providers: dict[type, Any] = {}
        self._needed: list[tuple[type, str]] = []  # contract, and who needs it

    def subscribe(self, fact: type[F], listener: Callable[[F], None]) -> None:
        """Call the listener with every fact of this type, after those that subscribed before."""
        self._listeners.setdefault(fact, []).append(listener)

    def listeners(self, fact: type[F]) -> list[Callable[[F], None]]:
        """Those that subscribe to facts of this type, now and later. While there are none, a fact that would be
        published for every job need not be made."""
        return self._listeners.setdefault(fact, [])

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

    def need(self, contract: type[C], user: object) -> Callable[[], C]:
        """Say, while the user is built, that it cannot do without the contract. The provider is what the answer returns
        when it is called, once everything is built."""
        name = type(user).__name__
        self._needed.append((contract, name))

        def provider() -> C:
            found: C | None = self._providers.get(contract)
            assert found is not None, _missing(contract, name)
            return found

        return provider

    def check(self) -> None:
        """Everything is built: each contract that somebody needs must have a provider."""
        missing = [_missing(contract, user) for contract, user in self._needed if contract not in self._providers]
        assert not missing, "; ".join(missing)


def _missing(contract: type, user: str) -> str:
    return f"{user} needs a provider of {contract.__name__}, and no service provides it"
