"""What a pilot transfers for jobs that it keeps apart from itself."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mendflow.core.data.protocols import LOCAL, PROTOCOLS
from mendflow.pilot.agent.http import FileClient, ServerAddress
from mendflow.pilot.files.sources import InputSources, OpenElements
from mendflow.pilot.isolation.allowed_transfers import local_path, transfer_check
from mendflow.pilot.isolation.options import NOT_ISOLATED, Isolation
from mendflow.transfer.addresses import address_of
from mendflow.transfer.errors import BadFileUrl
from tests.patience import PATIENCE_S

AS_NOBODY = Isolation(jobs_as="nobody")
ELSEWHERE = "https://example.org/data"


@pytest.mark.parametrize(
    "address",
    [
        "/etc/shadow",
        *(f"{protocol}:///etc/shadow" for protocol in sorted(LOCAL)),
        "FILE:///etc/shadow",
        "file://localhost/etc/shadow",
        "local://localhost/etc/shadow",
        "simplecache::file:///etc/shadow",
        "unheard-of:///etc/shadow",
    ],
)
def test_files_of_its_own_machine_are_neither_read_nor_written(address: str) -> None:  # SE-2
    check = transfer_check(AS_NOBODY)
    assert "no files of its own machine" in check(address, False)
    assert "no files of its own machine" in check(address, True)
    assert not transfer_check(NOT_ISOLATED)(address, True)


@pytest.mark.parametrize("protocol", sorted(PROTOCOLS))
def test_an_address_is_of_this_machine_just_if_the_transfer_takes_it_for_one(protocol: str) -> None:  # SE-2
    address = f"{protocol}:///secret" if protocol in LOCAL else f"{protocol}://host/secret"
    assert (local_path(address) == "/secret") == (address_of(address).protocol == "file")


def test_what_jobs_are_shown_may_be_read_but_not_through_links_out_of_it(tmp_path: Path) -> None:  # SE-2
    shown = tmp_path / "shown"
    shown.mkdir()
    (shown / "out").symlink_to("/etc")
    check = transfer_check(Isolation(sandbox="bubblewrap", shown=(str(shown),)))
    assert not check(f"file://{shown}/a.txt", False) and check(f"file://{shown}/a.txt", True)
    assert check(f"{shown}/out/shadow", False) and check(f"{shown}/../secret", False)
    assert check(f"{shown}-not/a.txt", False)


def test_without_a_network_nothing_comes_over_one() -> None:  # SE-2
    assert not transfer_check(AS_NOBODY)(ELSEWHERE, False)
    assert "no network" in transfer_check(Isolation(sandbox="bubblewrap", network="none"))(ELSEWHERE, False)


def test_an_input_of_its_own_machine_is_refused(tmp_path: Path) -> None:  # SE-2
    (tmp_path / "secret").write_text("s")
    files = FileClient(ServerAddress("http://127.0.0.1:9", ""))
    sources = InputSources(files, OpenElements(), check_transfer=transfer_check(AS_NOBODY))
    with pytest.raises(BadFileUrl, match="no files of its own machine"):
        sources.fetch(f"file://{tmp_path}/secret", str(tmp_path / "taken"), None)
    assert not (tmp_path / "taken").exists()


def test_a_server_without_tokens_takes_no_jobs_that_share_its_account_and_network(tmp_path: Path) -> None:  # SE-2
    words = ["serve", "--jobs", "1", "--sandbox", "containers", "--data-dir", str(tmp_path / "data")]
    told = {name: value for name, value in os.environ.items() if name != "MENDFLOW_TOKEN"}
    done = subprocess.run(
        [sys.executable, "-m", "mendflow", *words], env=told, capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert done.returncode == 6 and "--sandbox-network none" in " ".join(done.stderr.split())
