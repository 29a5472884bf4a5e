"""Tables that arrive in a folder are counted, each once; somebody is told of one that cannot be: in Prefect, which has
no trigger for files of its own."""

import time
from pathlib import Path

import requests
from prefect import flow, task


def tell(flow, run, state):
    requests.post("http://127.0.0.1:9/hook", json={"flow": flow.name, "message": state.message}, timeout=10)


@task
def count(file):
    rows = sum("," in line for line in Path(file).read_text().splitlines())
    assert rows
    return rows


@flow(on_failure=[tell])
def arrival(file: str):
    return count(file)


def watch():
    known = set()
    while True:
        for file in set(Path("incoming").glob("*.csv")) - known:
            known.add(file)
            arrival(str(file), return_state=True)
        time.sleep(2)


if __name__ == "__main__":
    watch()
