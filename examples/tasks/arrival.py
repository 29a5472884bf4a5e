"""Tables that arrive in a folder are counted, each once; somebody is told of one that cannot be. It is deployed as
arrival.yaml is."""

from pathlib import Path

from mendflow import flow, shell


@flow(on={"files": {"in": "incoming", "match": "*.csv", "stable": "2 s"}, "failure": {"notify": "operator"}})
def arrival(file: Path):
    count = shell('rows=$(grep -c , in.csv); echo "rows=$rows" >> "$MENDFLOW_OUTPUT"', inputs={"in.csv": file})
    return {"rows": count["rows"]}
