"""Domains as real processes: connected by commands, asked, killed, and disconnected. FM-4"""

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mendflow.client import SyncClient
from mendflow.core.model.domains import DomainView
from tests.e2e.conftest import World
from tests.patience import PATIENCE_S
from tests.servers.processes import free_port

ANNS, BOBS = "the-token-of-ann-0123456789", "the-token-of-bob-0123456789"
EXAMPLE = Path(__file__).parents[2] / "examples" / "domains" / "harvest.yaml"


class DomainProcess:
    """`mendflow serve` with a pilot of its own."""

    def __init__(self, name: str, folder: Path, *, slots: int = 2, token: str = "") -> None:
        self.name = name
        self.data = folder / name
        self.slots = slots
        self.env = {key: value for key, value in os.environ.items() if key != "MENDFLOW_TOKEN"}
        if token:
            self.env["MENDFLOW_TOKEN"] = token
        self.token = token
        self.move()
        self.log = (folder / f"{name}.log").open("ab")
        self.process: subprocess.Popen[bytes] | None = None

    def move(self) -> None:
        """Listen at another port from the next start on."""
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.client = SyncClient(self.url, token=self.token)

    def start(self) -> None:
        words = ["serve", "--domain", self.name, "--data-dir", str(self.data), "--port", str(self.port), "--lease", "4"]
        words += ["--jobs", str(self.slots)] if self.slots else []
        self.process = subprocess.Popen(
            [sys.executable, "-m", "mendflow", *words],
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=self.log,
            env=self.env,
        )

    def wait(self) -> None:
        World.until(lambda: self.client.health().status == "ok", f"{self.name} to answer")

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        self.client.close()
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self.log.close()

    def run(self, *words: str, said: str = "") -> subprocess.CompletedProcess[str]:
        """A command to this domain, as its administrator gives it."""
        command = [sys.executable, "-m", "mendflow", *words, "--server", self.url]
        return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, env=self.env, input=said)

    def domain(self, name: str) -> DomainView:
        return self.client.connected_domain(name)

    def invite(self, other: "DomainProcess", *options: str) -> str:
        done = self.run("domains", "invite", other.name, *options)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def connect(self, other: "DomainProcess", token: str) -> subprocess.CompletedProcess[str]:
        return self.run("domains", "connect", other.name, other.url, said=token)

    def done(self, case: str) -> bool:
        return self.client.case(case).status in ("completed", "failed", "cancelled")


Found = Callable[..., DomainProcess]


@pytest.fixture
def found(tmp_path: Path) -> Iterator[Found]:
    """Starts a domain of this name."""
    made: list[DomainProcess] = []

    def start(name: str, **options: object) -> DomainProcess:
        domain = DomainProcess(name, tmp_path, **options)  # type: ignore[arg-type]  # own fields
        made.append(domain)
        domain.start()
        return domain

    yield start
    for each in made:
        each.stop()


def join(one: DomainProcess, other: DomainProcess) -> None:
    done = other.connect(one, one.invite(other))
    assert done.returncode == 0, done.stderr
    for here, there in ((one, other), (other, one)):
        World.until(
            lambda here=here, there=there: here.domain(there.name).report is not None,  # type: ignore[misc]  # as a test gives them
            f"{here.name} to hear of {there.name}",
        )


def slots_of(here: DomainProcess, name: str) -> int:
    report = here.domain(name).report
    return report.slots if report is not None else 0


def test_domains_are_connected_listed_and_disconnected_by_commands(found: Found) -> None:  # FM-4
    fiu, ibm = found("fiu"), found("ibm", slots=3)
    fiu.wait()
    ibm.wait()
    assert "connected with no other" in fiu.run("domains").stdout
    token = fiu.invite(ibm)
    assert "invited" in fiu.run("domains").stdout
    wrong = ibm.connect(fiu, token[::-1])
    assert wrong.returncode != 0 and "no such open invitation" in wrong.stderr
    assert ibm.connect(fiu, token).returncode == 0
    World.until(lambda: slots_of(fiu, "ibm") == 3, "ibm to tell its slots")
    listed = json.loads(fiu.run("domains", "--json").stdout)
    [view] = listed["domains"]
    assert (listed["name"], view["name"], view["state"], view["url"]) == ("fiu", "ibm", "connected", ibm.url)
    shown = fiu.run("domains", "show", "ibm").stdout
    assert "free of 3" in shown and "may run here: jobs and flows of its own" in shown

    gone = fiu.run("domains", "disconnect", "ibm")
    assert gone.returncode == 0 and "ibm is disconnected" in gone.stdout
    World.until(lambda: ibm.domain("fiu").state == "refused", "ibm to be refused")
    assert "does not know that token" in ibm.domain("fiu").reason
    assert ibm.run("domains", "disconnect", "fiu").returncode == 0
    assert "connected with no other" in ibm.run("domains").stdout


def test_a_connection_outlives_kill_9_of_both_sides(found: Found, tmp_path: Path) -> None:
    fiu, ibm = found("fiu", slots=0), found("ibm")
    fiu.wait()
    ibm.wait()
    join(fiu, ibm)
    for each in (fiu, ibm):
        each.kill()
    for each in (fiu, ibm):
        each.start()
    fiu.wait()
    ibm.wait()
    flow = tmp_path / "far.yaml"
    flow.write_text(
        "name: far\njobs:\n  there:\n    domain: ibm\n"
        '    run: echo "n=7" >> "$MENDFLOW_OUTPUT"\noutputs: {n: "${{ jobs.there.outputs.n }}"}\n'
    )
    started = fiu.run("start", str(flow), "--json")
    assert started.returncode == 0, started.stderr
    case = json.loads(started.stdout)["id"]
    World.until(lambda: fiu.done(case), "the case to end")
    assert fiu.client.case(case).outputs == {"n": 7}
    [there] = ibm.client.cases()
    assert there.owner.startswith("fiu/")
    assert "it went to the domain ibm" in fiu.run("why", f"{case}:there").stdout


def test_a_result_comes_back_though_its_domain_was_killed_and_listens_at_another_port(
    found: Found, tmp_path: Path
) -> None:
    fiu, ibm = found("fiu", slots=0), found("ibm")
    fiu.wait()
    ibm.wait()
    join(fiu, ibm)
    go, flow = tmp_path / "go", tmp_path / "far.yaml"
    flow.write_text(
        "name: far\njobs:\n  there:\n    domain: ibm\n"
        f'    run: until [ -e {go} ]; do sleep 0.1; done; echo "n=7" >> "$MENDFLOW_OUTPUT"\n'
        'outputs: {n: "${{ jobs.there.outputs.n }}"}\n'
    )
    started = fiu.run("start", str(flow), "--json")
    assert started.returncode == 0, started.stderr
    case = json.loads(started.stdout)["id"]
    World.until(lambda: ibm.client.cases(), "ibm to have it")
    [there] = ibm.client.cases()
    ibm.kill()
    ibm.move()
    ibm.start()
    ibm.wait()
    go.touch()
    World.until(lambda: fiu.done(case), "the case to end")
    assert fiu.client.case(case).outputs == {"n": 7}
    assert [each.id for each in ibm.client.cases()] == [there.id]  # it was not sent anew
    assert fiu.domain("ibm").told == (ibm.url,)
    corrected = fiu.run("domains", "address", "ibm", ibm.url)
    assert f"ibm is called at {ibm.url} from now on" in corrected.stdout, corrected.stderr
    assert fiu.domain("ibm").url == ibm.url


def test_a_flow_for_a_domain_that_is_not_connected_does_not_run(found: Found, tmp_path: Path) -> None:
    fiu = found("fiu")
    fiu.wait()
    flow = tmp_path / "far.yaml"
    flow.write_text("name: far\njobs:\n  there: {domain: ibm, run: touch ran}\n")
    done = fiu.run("start", str(flow))
    assert done.returncode != 0
    assert "step there: the domain 'ibm' is not connected here" in done.stderr
    assert not fiu.client.cases()


def test_a_token_of_a_connection_and_one_of_a_person_open_different_doors(found: Found) -> None:
    fiu, ibm = found("fiu", token=ANNS), found("ibm", token=BOBS, slots=0)
    fiu.wait()
    ibm.wait()
    token = fiu.invite(ibm)

    def ask(path: str, shown: str, body: bytes | None = None) -> int:
        request = urllib.request.Request(
            f"{fiu.url}/api/v1{path}",
            data=body,
            headers={"Authorization": f"Bearer {shown}", "Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_S) as response:
                return int(response.status)
        except urllib.error.HTTPError as error:
            return error.code

    exchange = b'{"sender": "s", "serial": 0}'
    assert ask("/cases", token) == 401  # an invitation is no token
    assert ask("/domain/exchange", token, exchange) == 403
    assert ask("/domain/exchange", ANNS, exchange) == 403
    assert ask("/domains/ibm/invite", BOBS, b"{}") == 401
    assert ibm.connect(fiu, token).returncode == 0
    assert ask("/domain/exchange", token, exchange) == 403  # it was used
    World.until(lambda: ibm.domain("fiu").report is not None, "ibm to hear of fiu")
    assert fiu.run("domains", "rights", "ibm", "--no-own-flows", "--work-max", "1").returncode == 0
    assert not fiu.domain("ibm").rights.own_flows


@pytest.mark.full
def test_a_flow_whose_stages_run_in_three_domains_completes_though_one_is_disconnected_in_the_middle(
    found: Found,
) -> None:  # FM-4, the paper's figure 1
    fiu, ibm, bsc = found("fiu", slots=1), found("ibm"), found("bsc")
    for each in (fiu, ibm, bsc):
        each.wait()
    join(fiu, ibm)
    join(fiu, bsc)
    fields = json.dumps([f"field-{number}" for number in range(12)])
    started = fiu.run("start", str(EXAMPLE), "--input", f"fields={fields}", "--input", "seconds=3", "--json")
    assert started.returncode == 0, started.stderr
    case = json.loads(started.stdout)["id"]
    World.until(lambda: bsc.client.cases(), "bsc to get some of it")
    assert fiu.run("domains", "disconnect", "bsc", "--force").returncode == 0
    World.until(lambda: fiu.done(case), "the case to end")
    view = fiu.client.case(case)
    assert view.status == "completed", view.fault
    kilos = sum(10 + len(f"field-{number}") for number in range(12))
    assert view.outputs == {"price": kilos // 2 * 3}
    told = [fiu.client.why(f"{case}:{item.item}") for item in fiu.client.items(case) if item.item != "plan"]
    assert all(any("went to the domain" in fact or "stayed here" in fact for fact in each.facts) for each in told)
    assert any("went to the domain bsc" in fact for each in told for fact in each.facts)
