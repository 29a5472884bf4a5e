"""A flow to begin with: it has the keys that are used most, each explained."""

from typing import Final

import typer

app = typer.Typer()

TEMPLATE: Final = """\
# A flow, to be changed: put it into a file such as survey.yaml. Then "mendflow check survey.yaml" says what is wrong in
# it, "mendflow run survey.yaml" runs it here, and "mendflow flows schema" has all keys and what they mean.
name: survey

inputs:                        # what a run can be given: mendflow run survey.yaml --input 'nights=["wed"]'
  nights: [mon, tue]           # what it is unless it is given; so it is a list
  memory: 200 MB

defaults:                      # of all jobs
  retries: 1                   # a job that fails is tried once more

jobs:
  fetch:                       # jobs run at the same time, unless one needs another
    for-each: ${{ inputs.nights }}    # one job for each element of the list, which is ${{ item }} in it
    run: echo ${{ quote(item) }} > night.txt    # quote: whatever is in it, it is one word for the shell
    files: {night: night.txt}  # the file that it leaves; others call it jobs.fetch.files.night
    time: 10 min               # it is ended when it takes longer; memory, disk, cpus and gpus are said like this, too
  reduce:
    inputs: {nights/: "${{ jobs.fetch.files.night }}"}    # the files of all nights, in a folder; so it waits for fetch
    run: |                     # a script for bash, which ends at the first command that fails
      # each line NAME=VALUE in this file is an output: jobs.reduce.outputs.rows
      echo "rows=$(cat nights/* | wc -l)" >> "$MENDFLOW_OUTPUT"
    memory: ${{ inputs.memory }}
  review:
    needs: reduce
    if: jobs.reduce.outputs.rows > 100    # with fewer rows, as here, it is skipped, and so is what needs it
    user-task: Publish these nights?      # a person answers: mendflow worklist, or the web app
    role: astronomer
    deadline: 2 days
  publish:
    needs: review
    run: echo published

outputs:                       # what the run leaves in the end
  rows: ${{ jobs.reduce.outputs.rows }}
"""


@app.command("init")
def init() -> None:
    """Print a flow to begin with, its keys explained."""
    typer.echo(TEMPLATE, nl=False)
