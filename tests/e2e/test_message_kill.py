"""Conversations over SOAP with a server that is killed while they go on. FM-2 FM-6"""

import threading
import time

import pytest
from msgspec.structs import replace

from mendflow.core.model.flow import Flow
from mendflow.core.model.xml import ServicePort, SoapBinding
from tests.core.engine.xml.conversations import PORT, WORLD
from tests.e2e.conftest import World
from tests.e2e.soap_client import Away, send, texts
from tests.patience import PATIENCE_S
from tests.services.messaging.test_message_router import QUESTIONS

pytestmark = pytest.mark.law

SPOKEN = ServicePort(
    service="{urn:t}S",
    name="P",
    port_type=PORT,
    style="rpc",
    operations={name: SoapBinding(style="rpc", namespace="urn:t") for name in ("begin", "ask")},
)
FLOW: Flow = replace(QUESTIONS, xml=replace(WORLD, ports=(SPOKEN,)))
DEATHS = 6


def body(operation: str, id: int) -> str:
    return f'<t:{operation} xmlns:t="urn:t"><id>{id}</id><text>?</text></t:{operation}>'


@pytest.fixture
def served(world: World) -> World:
    world.start_server()
    world.wait_for_server()
    world.client.deploy(FLOW)
    return world


def killed(world: World) -> None:
    world.kill_server()
    world.start_server()


def test_a_message_that_came_too_early_is_answered_after_two_deaths(served: World) -> None:
    url = f"{served.url}/soap/flows/talks"
    with pytest.raises(Away):  # nobody answers it yet, and who asked hangs up
        send(url, body("ask", 1), "urn:early", timeout_s=2)
    killed(served)
    served.wait_for_server()
    status, _ = send(url, body("begin", 1), "urn:begin")
    assert status == 200
    killed(served)
    served.wait_for_server()
    for operation, id in (("ask", "urn:early"), ("begin", "urn:begin")):
        status, answer = send(url, body(operation, 1), id)
        assert (status, texts(answer)["text"]) == (200, "yes")
    assert [(case.id, case.status) for case in served.client.cases(flow="talks")] == [("talks-soap.1", "completed")]


class Client(threading.Thread):
    """Has one conversation after the other until it is told that these were enough, and says everything again until it
    is answered."""

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True)
        self.url = url
        self.again = self.talks = 0
        self.enough = threading.Event()
        self.answers: list[tuple[int, str]] = []
        self.start()

    def run(self) -> None:
        while not self.enough.is_set():
            self.talks += 1
            for operation in ("begin", "ask"):
                self.answers.append(self.ask(operation, self.talks))

    def ask(self, operation: str, id: int) -> tuple[int, str]:
        while True:
            try:
                status, answer = send(self.url, body(operation, id), f"urn:{operation}:{id}", timeout_s=10)
            except Away:
                self.again += 1
                time.sleep(0.05)
                continue
            if status != 503:
                return status, texts(answer).get("text", "")


def test_no_conversation_is_lost_or_had_twice_while_the_server_is_killed_again_and_again(served: World) -> None:
    client = Client(f"{served.url}/soap/flows/talks")
    for death in range(DEATHS):
        served.wait_for_server()
        client.join(0.3 + 0.1 * death)
        killed(served)
    served.wait_for_server()
    client.enough.set()
    client.join(PATIENCE_S)
    assert client.answers == [(200, "yes")] * 2 * client.talks
    assert client.again
    cases = served.client.cases(flow="talks", limit=10_000)
    assert [case.status for case in cases] == ["completed"] * client.talks
