"""A pilot that works for some projects learns nothing of the files of others."""

import aiohttp
import msgspec

from mendflow.client import Client
from mendflow.core.model.data import LocateAnswer, LocateRequest, LogicalFile, Replica, StorageElement
from mendflow.core.model.ids import PilotId
from mendflow.core.model.principals import PILOT, Principal
from tests.server.conftest import Serving
from tests.server.people import PEOPLE, KnownPeople

PILOTS = [Principal("of-red", frozenset({PILOT}), {"red": "operator"}), Principal("of-all", frozenset({PILOT}))]


async def test_a_pilot_is_told_where_files_of_its_own_projects_are(  # SE-2
    serving: Serving, http: aiohttp.ClientSession
) -> None:
    served = await serving(KnownPeople([*PEOPLE.values(), *PILOTS]))
    async with Client(served.url, token="root") as root:
        await root.put_element(StorageElement(name="near", url="file:///near"))
        for project in ("red", "blue"):
            replicas = (Replica(element="near"),)
            await root.add_data(
                LogicalFile(name=f"/{project}", sha256="a" * 64, bytes=3, replicas=replicas), project=project
            )

    async def locate(token: str) -> LocateAnswer:
        body = msgspec.msgpack.encode(LocateRequest(pilot=PilotId("p"), names=["/red", "/blue", "/none"]))
        headers = {"authorization": f"Bearer {token}"}
        async with http.post(f"{served.url}/api/v1/pilots/locate", data=body, headers=headers) as response:
            return msgspec.msgpack.decode(await response.read(), type=LocateAnswer)

    known = await locate("of-red")
    assert known.files.keys() == {"/red"}
    assert known.wrong["/blue"].replace("blue", "") == known.wrong["/none"].replace("none", "")
    assert (await locate("of-all")).files.keys() == {"/red", "/blue"}
