"""A real Apache ODE that runs adapted processes, a mendflow server whose proxy they call, and two partners."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from mendflow.formats.bpel.adapter import adapt
from tests.e2e.conftest import World
from tests.e2e.test_bpel_adapter import Bank
from tests.formats.bpel.adapter.bank import save, written
from tests.servers import ode as servers
from tests.servers.ode import Ode

collect_ignore_glob = ["test_*.py"] if servers.lacking() else []

SERVICE = """<w:service name="{name}"><w:port name="LoanPort" binding="bank:BankSoap">
    <soap:address location="{address}"/></w:port></w:service>
  <plnk:partnerLinkType"""
LINKS = """
    <provide partnerLink="client"><service xmlns:b="urn:test:bank" name="b:{name}" port="LoanPort"/></provide>
    <invoke partnerLink="bank"><service xmlns:b="urn:test:bank" name="b:BankService" port="BankPort"/></invoke>"""
PROXY = """
    <invoke partnerLink="mendflowProxy">
      <service xmlns:mendflow="urn:mendflow:proxy:1" name="mendflow:Proxy" port="ProxyPort"/>
    </invoke>"""


class Foreign:
    """The engine, and what its processes call."""

    def __init__(self, ode: Ode, world: World, banks: tuple[Bank, Bank]) -> None:
        self.ode, self.world, self.banks = ode, world, banks

    def deploy(self, name: str, body: str, *, adapted: bool = True) -> str:
        """Deploy a process under a name and say where it is asked."""
        folder, address = self.world.folder / f"{name}-files", self.ode.address(name)
        path = written(folder, body)
        service = SERVICE.format(name=name, address=address)
        for file in (path, path.with_name("bank.wsdl")):
            text = file.read_text().replace("127.0.0.1:9/", f"127.0.0.1:{self.banks[0].port}/")
            text = text.replace('<process name="loan"', f'<process name="{name}"')
            file.write_text(text.replace("<plnk:partnerLinkType", service, 1))
        if adapted:
            path = save(adapt(path, self.world.folder / name / "loan.bpel", f"{self.world.url}/soap/proxy"))
        self.ode.deploy(path.parent, name, ("urn:test:loan", name), LINKS.format(name=name) + PROXY * adapted)
        return address


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Foreign]:
    folder: Path = tmp_path_factory.mktemp("foreign")
    for name in ("ode", "first", "second"):
        (folder / name).mkdir()
    world, ode, banks = World(folder), Ode(folder / "ode"), (Bank(folder / "first"), Bank(folder / "second"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MENDFLOW_LEVELS", "1 s, 2 s, 4 s, 8 s, 16 s")
        world.start_server()
    try:
        for bank in banks:
            bank.start()
        world.wait_for_server()
        ode.start()
        yield Foreign(ode, world, banks)
    finally:
        ode.stop()
        for bank in banks:
            bank.stop()
        world.stop()
