"""Each file that arrives in a folder is counted; arrival-sets.yaml says which folder. If it fails, somebody is told."""

from pathlib import Path

from mendflow import flow, shell


@flow
def arrival(file: Path):
    count = shell('rows=$(grep -c , in.csv); echo "rows=$rows" >> "$MENDFLOW_OUTPUT"', inputs={"in.csv": file})
    shell(f"echo {file.name:q} cannot be counted", when=count.failed)
    return {"rows": count["rows"]}
