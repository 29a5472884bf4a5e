"""Tried again by cause: a busy server, which is exit code 75, four times with growing waits; lack of memory twice."""

from mendflow import Retry, flow, shell


@flow
def retries():
    shell("test $MENDFLOW_ATTEMPT -ge 3 || exit 75", retries=[Retry(4, wait="10 ms", on=75), Retry(2, on="memory")])
