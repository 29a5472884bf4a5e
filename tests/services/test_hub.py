"""The hub: facts for whoever subscribes, and providers for those who need them."""

from typing import Protocol

import pytest

from mendflow.services.base.hub import Hub


class Greeter(Protocol):
    def greet(self) -> str: ...


class Host:
    def __init__(self, hub: Hub) -> None:
        self._greeter = hub.need(Greeter, self)

    def welcome(self) -> str:
        return self._greeter().greet()


class Friend:
    def greet(self) -> str:
        return "hello"


def test_a_contract_that_is_needed_and_not_provided_is_named_with_who_needs_it() -> None:
    hub = Hub()
    host = Host(hub)
    with pytest.raises(AssertionError, match="Host needs a provider of Greeter, and no service provides it"):
        hub.check()
    with pytest.raises(AssertionError, match="Host needs a provider of Greeter"):
        host.welcome()


def test_the_provider_may_be_built_after_who_needs_it() -> None:
    hub = Hub()
    host = Host(hub)
    hub.provide(Greeter, Friend())
    hub.check()
    assert host.welcome() == "hello"


def test_a_contract_that_nobody_needs_may_have_no_provider() -> None:
    hub = Hub()
    hub.check()
    assert hub.provider(Greeter) is None


def test_who_publishes_sees_whether_anybody_listens_now_or_later() -> None:
    hub = Hub()
    listeners = hub.listeners(Friend)
    assert not listeners
    heard: list[object] = []
    hub.subscribe(Friend, heard.append)
    assert listeners
    hub.publish(friend := Friend())
    assert heard == [friend]
