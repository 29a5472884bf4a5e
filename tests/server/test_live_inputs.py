"""What the live cases of a project were given takes so much memory at most."""

from pathlib import Path

import msgspec
import pytest

from mendflow.client import Client
from mendflow.core.model.errors import QuotaExceeded, RequestError
from mendflow.core.model.flow import Call, Flow, Input, Wait
from mendflow.core.model.ids import FlowName
from mendflow.core.model.values import memory_of
from mendflow.services.cases.live_inputs import DEFAULTS_BYTES_MAX, defaults_of
from mendflow.wiring import ServerOptions, running_server
from tests.patience import until

WAITS = Flow(name=FlowName("waits"), inputs={"rows": Input()}, body=Wait(name="w", duration=86_400_000))
CALLS = Flow(
    name=FlowName("calls"),
    body=Call(name="c", flow="waits", inputs={"rows": [{} for _ in range(300)]}),
    calls=(WAITS,),
)
ROWS: list[dict[str, int]] = [{} for _ in range(100)]
ROOM = 2 * memory_of({"rows": ROWS}) + 100


async def test_cases_that_wait_take_so_much_memory_and_a_restart_counts_them(tmp_path: Path) -> None:  # SE-3
    options = ServerOptions(data=tmp_path / "data", announce=False, live_inputs_bytes=ROOM)
    async with running_server(options) as server, Client(server.url) as client:
        await client.deploy(WAITS)
        first = (await client.start("waits", {"rows": ROWS})).id
        await client.start("waits", {"rows": ROWS})
        with pytest.raises(QuotaExceeded, match="give large values as files"):
            await client.start("waits", {"rows": ROWS})
        await client.start("waits", {"rows": []})
    async with running_server(options) as server, Client(server.url) as client:
        with pytest.raises(RequestError, match="give large values as files"):
            await client.start("waits", {"rows": ROWS})
        await client.cancel(first)

        async def is_over() -> bool:
            return (await client.case(first)).status == "cancelled"

        await until(is_over)
        await client.start("waits", {"rows": ROWS})


async def test_a_called_case_that_is_given_too_much_is_a_fault_of_its_caller(tmp_path: Path) -> None:  # SE-3
    options = ServerOptions(data=tmp_path / "data", announce=False, live_inputs_bytes=ROOM)
    async with running_server(options) as server, Client(server.url) as client:
        await client.deploy(CALLS)
        case = (await client.start("calls")).id

        async def fault() -> str:
            found = (await client.case(case)).fault
            return found.message if found is not None else ""

        assert "give large values as files" in await until(fault)


async def test_defaults_that_cases_keep_take_of_the_same_memory(tmp_path: Path) -> None:  # SE-3
    by_default = msgspec.structs.replace(WAITS, inputs={"rows": Input(default=ROWS)})
    options = ServerOptions(data=tmp_path / "data", announce=False, live_inputs_bytes=ROOM + 2 * memory_of({}))
    async with running_server(options) as server, Client(server.url) as client:
        await client.deploy(by_default)
        await client.start("waits")
        await client.start("waits", {"rows": ROWS})
        with pytest.raises(QuotaExceeded, match="give large values as files"):
            await client.start("waits")
    async with running_server(options) as server, Client(server.url) as client:
        with pytest.raises(QuotaExceeded, match="give large values as files"):
            await client.start("waits")


async def test_a_case_keeps_so_many_small_defaults_at_most(tmp_path: Path) -> None:
    texts = {f"text{number}": Input(default="x" * 4_000) for number in range(50)}
    flow = msgspec.structs.replace(WAITS, inputs={"rows": Input(), **texts, "small": Input(default=7)})
    options = ServerOptions(data=tmp_path / "data", announce=False)
    async with running_server(options) as server, Client(server.url) as client:
        await client.deploy(flow)
        kept = (await client.start("waits", {"rows": [], "text1": "mine"})).defaults
    assert list(kept) == ["text0", "text2", "text3", "text4", "small"]


def test_names_count_with_the_defaults_that_a_case_keeps() -> None:
    names = [f"a_rather_long_name_of_an_input_number_{number}" for number in range(16_000)]
    flow = msgspec.structs.replace(WAITS, inputs={name: Input(default=1) for name in names})
    kept = defaults_of(flow, {names[0]: 2})
    assert list(kept) == names[1 : len(kept) + 1]
    assert DEFAULTS_BYTES_MAX - 1_000 < len(msgspec.json.encode(kept)) <= DEFAULTS_BYTES_MAX


def test_a_value_is_as_large_as_its_texts_and_parts() -> None:
    assert memory_of(7) == 0
    assert memory_of("x" * 1000) == 1000
    assert memory_of([{}] * 1000) > 250 * 1000
    assert memory_of({"a": ["b"]}) == 220 + 60 + 1 + 60 + 60 + 1
