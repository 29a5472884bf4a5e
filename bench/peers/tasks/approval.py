"""What is good enough waits for a person, two hours at most; the rest is discarded: in Prefect."""

import sys

from prefect import flow, pause_flow_run, task


@task
def measure(quality):
    return quality


@task
def publish():
    print("published")


@task
def discard():
    print("discarded")


@flow
def approval(quality: int = 7):
    if measure(quality) > 5:
        pause_flow_run(timeout=7200)
        publish()
    else:
        discard()


if __name__ == "__main__":
    approval(int(sys.argv[1]))
