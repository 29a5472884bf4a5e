"""Failures for tests of the pages of recovery: trouble that every job has once, and trouble that stays."""

from typing import Any

from mendflow.core.model.ids import CaseId
from tests.web.web_server import WebServer

PASSING = """
name: {flow}
on-unhandled: hold
inputs: {{sample: {{type: string}}}}
steps:
  - name: solver
    run: |
      echo "solving ${{{{ inputs.sample }}}} with 4 threads"
      if mkdir "{asked}/${{{{ inputs.sample }}}}" 2>/dev/null; then
        echo "{words}" >&2; exit {code}
      fi
      echo "${{{{ inputs.sample }}}} is solved"
"""
LICENCES = "licence server: no token left"
CRUNCH = """
name: crunch
on-unhandled: hold
inputs: {n: {type: number}}
steps:
  - name: load
    run: 'echo "Error: matrix is singular" >&2; exit 3'
"""


def passing_trouble(app: WebServer, flow: str, words: str, *, code: int = 9) -> None:
    """Deploy a flow whose cases fail with these words once each, wait, and succeed when they are tried again."""
    asked = app.folder / f"asked-{flow}"
    asked.mkdir()
    app.deploy(flow, PASSING.format(flow=flow, words=words, code=code, asked=asked))


def fail(app: WebServer, flow: str, samples: str) -> tuple[str, list[CaseId]]:
    """Start a case for each sample; the group of their failures, and the cases, once all of them wait."""
    cases = [app.begin(flow, sample=sample) for sample in samples]
    said = app.wait_for(f"/failures?flow={flow}", lambda groups: _waiting(groups) >= len(samples))
    return str(said[0]["id"]), cases


def _waiting(groups: Any) -> int:
    return sum(group["waiting"] for group in groups)
