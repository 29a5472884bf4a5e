"""The named limits and the secrets that a job uses are shown by name, in its report and by `why`."""

import pytest

from tests.cli.conftest import Shell

FLOW = """
name: licensed
jobs:
  solve:
    limits: {licence-x: 2, licence-y: 1}
    secrets: {TOKEN: api-token}
    run: echo done
  plain:
    run: echo done
"""
VALUE = "tell-nobody-42"


@pytest.mark.full
def test_report_and_why_name_limits_and_secrets_and_no_value(shell: Shell) -> None:  # DU-6
    shell.write("licensed.yaml", FLOW)
    shell.write("value", VALUE)
    for name in ("licence-x", "licence-y"):
        shell.ok("limits", "set", name, "4")
    shell.ok("secrets", "set", "api-token", "--file", "value")
    shell.ok("run", "licensed.yaml")
    told = shell.ok("why", "last:solve")
    assert "it uses the named limits licence-x (2), licence-y" in told and "it gets the secret api-token" in told
    assert "named limit" not in shell.ok("why", "last:plain")
    [report] = (shell.folder / ".mendflow" / "reports").iterdir()
    page = report.read_text()
    assert "<th>solve</th><td>licence-x (2), licence-y</td><td>api-token</td>" in page
    assert VALUE not in page + told
