"""A body with very many parts is refused before it is read. SE-3"""

import aiohttp
import pytest

from mendflow.core.model.values import PARTS_MAX
from mendflow.server.routes.json_body import VALUES_MAX
from mendflow.server.runner import HttpServer


@pytest.mark.parametrize(
    ("part", "count", "status"),
    [("[]", PARTS_MAX + 1, 413), ("{}", PARTS_MAX + 1, 413), ("1", VALUES_MAX + 2, 413), ("[]", PARTS_MAX // 2, 404)],
)
async def test_many_parts_are_refused(
    part: str, count: int, status: int, served: HttpServer, http: aiohttp.ClientSession
) -> None:
    filling = "a" * (1 << 20)
    body = f'{{"flow": "none", "inputs": {{"s": "{filling}", "l": [{",".join([part] * count)}]}}}}'
    headers = {"content-type": "application/json"}
    async with http.post(f"{served.url}/api/v1/cases", data=body, headers=headers) as response:
        told = await response.json()
    assert response.status == status
    assert ("give it as a file" in told["message"]) is (status == 413), "otherwise it is read: there is no such flow"


async def test_the_description_of_a_flow_with_long_texts_is_read(
    served: HttpServer, http: aiohttp.ClientSession
) -> None:
    """A text of more than a megabyte is one part."""
    body = {"flow": "none", "inputs": {"s": "a, b; " * 200_000}}
    async with http.post(f"{served.url}/api/v1/cases", json=body) as response:
        assert response.status == 404
