"""A server is killed with -9 while jobs publish files and others read them by name. Afterwards every file is in the
catalogue once, lies where the catalogue says, and is what the catalogue says."""

import hashlib
import random
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from mendflow.core.model.data import StorageElement
from mendflow.core.model.errors import RequestError
from mendflow.formats.yaml import read_flow
from tests.e2e.site import Site

pytestmark = pytest.mark.law

FILES = 24
KILLS = 4
FLOW = """
name: publish
steps:
  - for-each: {from: 1, to: 24}
    steps:
      - name: make
        run: echo "number ${{ item }}" > out; sleep 0.1
        files: {out: out}
        publish: {out: {as: "/store/made/${{ item }}", set: made}}
      - name: read
        run: cat in >> copy
        inputs: {in: "lfn:/store/made/${{ item }}"}
        files: {copy: copy}
        publish: {copy: "/store/read/${{ item }}"}
"""


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    site = Site(tmp_path, f"sqlite://{tmp_path}/store.db", lease_s=4)
    yield site
    site.close()


def test_what_was_published_is_there_once_however_often_the_server_dies(site: Site) -> None:  # FM-6, PJ-7
    chance = random.Random(5)
    client = site.serve("one")
    client.put_element(StorageElement(name="near", url=str(site.folder / "se")))
    site.pilot("pilot", "one")
    client.deploy(read_flow(FLOW, site.folder / "publish.yaml"))
    case = client.start("publish").id
    for _ in range(KILLS):
        time.sleep(chance.uniform(0.2, 1.5))  # no proof hangs on when it is
        site.processes["one"].kill()
        site.processes["one"].wait()
        site.start_server("one")
        site.until(lambda: client.health().status == "ok", "the server to be back")

    def over() -> bool:
        try:
            return client.case(case).status in ("completed", "failed", "cancelled")
        except RequestError:
            return False

    site.until(over, "the case to end")
    assert client.case(case).status == "completed", site.log()
    for kind in ("made", "read"):
        known = client.data(prefix=f"/store/{kind}/", limit=1000, every=True)
        assert {each.name for each in known} == {f"/store/{kind}/{number}" for number in range(1, FILES + 1)}
        for each in known:
            [place] = client.places(each.name)
            content = Path(urlsplit(place.url).path).read_bytes()
            assert content == f"number {each.name.rpartition('/')[2]}\n".encode()
            assert hashlib.sha256(content).hexdigest() == each.sha256
            assert not each.writing
    lies = sorted(path for path in (site.folder / "se" / "store").rglob("*") if path.is_file())
    assert len(lies) == 2 * FILES, lies  # and nothing half beside them
    assert [each.name for each in client.data(data_set="made", limit=1000)] == sorted(
        f"/store/made/{number}" for number in range(1, FILES + 1)
    )
