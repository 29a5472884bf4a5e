"""Tried again by cause, in Prefect: a busy server, which is exit code 75, four times with growing waits. More memory
cannot be asked for."""

import subprocess

from prefect import flow, task
from prefect.tasks import exponential_backoff


@task(
    retries=4,
    retry_delay_seconds=exponential_backoff(0.01),
    retry_condition_fn=lambda task, run, state: state.result(raise_on_failure=False).returncode == 75,
)
def upload():
    subprocess.run("n=$(cat tries); echo $((n + 1)) > tries; test $n -ge 3 || exit 75", shell=True, check=True)


@flow
def retries():
    upload()


if __name__ == "__main__":
    retries()
