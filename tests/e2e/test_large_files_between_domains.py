"""A large file goes to another domain, and another comes back, over a line that breaks again and again: each byte goes
over it about once."""

import hashlib
import os
from pathlib import Path
from random import Random

import pytest

from mendflow.formats import load
from tests.e2e.cutting_line import CuttingLine
from tests.e2e.two_domains import TwoDomains

MB = 1_000_000
FILE_BYTES = int(os.environ.get("MENDFLOW_LARGE_FILE_MB", "60")) * MB
CUT_BYTES = FILE_BYTES // 10
SPARE_BYTES = FILE_BYTES // 5
"""What was under way on a line when it was cut comes twice, and the domains exchange more than the file."""
FLOW = """
name: large
inputs:
  data: {type: file}
jobs:
  there:
    domain: south
    inputs: {in.bin: "${{ inputs.data }}"}
    run: (echo changed; cat in.bin) > out.bin
    files: out.bin
outputs:
  out: ${{ jobs.there.files["out.bin"] }}
"""


@pytest.mark.full
@pytest.mark.timeout(300)
def test_a_large_file_over_a_line_that_breaks_again_and_again_goes_over_it_about_once(tmp_path: Path) -> None:
    # FM-4 DM-1
    content = Random(1).randbytes(FILE_BYTES // 20) * 20
    with TwoDomains(tmp_path, CUT_BYTES, lines=CuttingLine) as domains:
        (tmp_path / "large.yaml").write_text(FLOW)
        (tmp_path / "data.bin").write_bytes(content)
        north, line = domains.clients["north"], domains.lines["south"]
        assert isinstance(line, CuttingLine)
        north.deploy(load(tmp_path / "large.yaml"))
        case = north.start("large", {"data": str(tmp_path / "data.bin")}).id
        domains.until(lambda: north.case(case).status in ("completed", "failed"), "the case", 240)
        ended = north.case(case)
        assert ended.status == "completed", ended.fault
        digest = hashlib.sha256(b"changed\n" + content).hexdigest()
        assert ended.outputs is not None and digest in str(ended.outputs["out"])
        print(f"{line.passed} bytes there, {line.returned} back, {line.cuts} cuts")
        assert FILE_BYTES <= line.passed < FILE_BYTES + SPARE_BYTES
        assert FILE_BYTES <= line.returned < FILE_BYTES + SPARE_BYTES
        assert line.cuts >= 2 * (FILE_BYTES // CUT_BYTES - 1)
