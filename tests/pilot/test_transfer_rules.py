"""What a pilot transfers for jobs that it keeps apart from itself."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mendflow.pilot.agent.http import FileClient, ServerAddress
from mendflow.pilot.files.sources import InputSources, OpenElements
from mendflow.pilot.isolation.options import NOT_ISOLATED, Isolation
from mendflow.pilot.isolation.transfer_rules import transfer_rule
from mendflow.transfer.errors import BadFileUrl
from tests.patience import PATIENCE_S

AS_NOBODY = Isolation(jobs_as="nobody")
ELSEWHERE = "https://example.org/data"


@pytest.mark.parametrize(
    "address", ["/etc/shadow", "file:///etc/shadow", "FILE:///etc/shadow", "file://localhost/etc/shadow"]
)
def test_files_of_its_own_machine_are_neither_read_nor_written(address: str) -> None:  # SE-2
    rule = transfer_rule(AS_NOBODY)
    assert "no files of its own machine" in rule(address, False)
    assert "no files of its own machine" in rule(address, True)
    assert not transfer_rule(NOT_ISOLATED)(address, True)


def test_what_jobs_are_shown_may_be_read_but_not_through_links_out_of_it(tmp_path: Path) -> None:  # SE-2
    shown = tmp_path / "shown"
    shown.mkdir()
    (shown / "out").symlink_to("/etc")
    rule = transfer_rule(Isolation(sandbox="bubblewrap", shown=(str(shown),)))
    assert not rule(f"file://{shown}/a.txt", False) and rule(f"file://{shown}/a.txt", True)
    assert rule(f"{shown}/out/shadow", False) and rule(f"{shown}/../secret", False)
    assert rule(f"{shown}-not/a.txt", False)


def test_without_a_network_nothing_comes_over_one() -> None:  # SE-2
    assert not transfer_rule(AS_NOBODY)(ELSEWHERE, False)
    assert "no network" in transfer_rule(Isolation(sandbox="bubblewrap", network="none"))(ELSEWHERE, False)


def test_an_input_of_its_own_machine_is_refused(tmp_path: Path) -> None:  # SE-2
    (tmp_path / "secret").write_text("s")
    files = FileClient(ServerAddress("http://127.0.0.1:9", ""))
    sources = InputSources(files, OpenElements(), rule=transfer_rule(AS_NOBODY))
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
