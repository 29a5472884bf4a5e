"""What a job reports as data another has as a file, whatever its size."""

import json

import pytest

from tests.cli.conftest import Shell

FLOW = """
jobs:
  read:
    run: |
      python3 -c 'import json; print("rows=" + json.dumps([[n, "x" * 10] for n in range(ROWS)]))' >> $MENDFLOW_OUTPUT
  each:
    for-each: {size: [1, 100000]}
    run: 'python3 -c "import json; print(\\"row=\\" + json.dumps([\\"x\\" * ${{ size }}]))" >> $MENDFLOW_OUTPUT'
  use:
    inputs: {rows.json: "${{ jobs.read.outputs.rows }}", all.json: "${{ jobs.each.outputs }}"}
    run: cat rows.json > out.json; cat all.json > all-out.json
    files: {out: out.json, all: all-out.json}
outputs: {out: "${{ jobs.use.files.out }}", all: "${{ jobs.use.files.all }}"}
"""


@pytest.mark.parametrize("rows", [2, 10_000])
def test_data_of_a_job_is_the_input_file_of_another(shell: Shell, rows: int) -> None:
    shell.write("rows.yaml", FLOW.replace("ROWS", str(rows)))
    shell.ok("run", "rows.yaml", "--quiet", "--output-dir", "o")
    assert json.loads((shell.folder / "o" / "out.json").read_text()) == [[n, "x" * 10] for n in range(rows)]
    assert json.loads((shell.folder / "o" / "all-out.json").read_text()) == [{"row": ["x"]}, {"row": ["x" * 100_000]}]
