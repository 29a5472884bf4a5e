"""A flow to begin with: it has the keys that are used most, each explained."""

from typing import Final

import typer

app = typer.Typer()

TEMPLATE: Final = """\
# A flow. mendflow check reports its problems, mendflow run runs it; docs/reference/flow-format.md has all keys.
name: survey

inputs:                        # mendflow run survey.yaml --input 'nights=["wed"]'
  nights: [mon, tue]           # a default, which says the type too
  memory: 200 MB

defaults:                      # of all jobs
  retries: 1

jobs:
  fetch:                       # jobs run at the same time, unless one needs another
    for-each: ${{ inputs.nights }}    # a job for each element, which is ${{ item }}
    run: echo ${{ quote(item) }} > night.txt
    files: {night: night.txt}  # what it leaves, for jobs and for outputs
    time: 10 min               # what a job may take: memory, disk, cpus, gpus as well
  reduce:
    inputs: {nights/: "${{ jobs.fetch.files.night }}"}    # uses what fetch leaves, so it waits for it
    run: |                     # a script, under bash -euo pipefail
      echo "rows=$(cat nights/* | wc -l)" >> "$MENDFLOW_OUTPUT"
    memory: ${{ inputs.memory }}
  review:
    needs: reduce
    if: jobs.reduce.outputs.rows > 100    # else it is skipped, and so is what needs it
    user-task: Publish these nights?      # a person answers: mendflow worklist, or the web app
    role: astronomer
    deadline: 2 days
  publish:
    needs: review
    run: echo published

outputs:
  rows: ${{ jobs.reduce.outputs.rows }}
"""


@app.command("init")
def init() -> None:
    """Print a flow to begin with, its keys explained."""
    typer.echo(TEMPLATE, nl=False)
