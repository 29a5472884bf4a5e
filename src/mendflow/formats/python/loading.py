from pathlib import Path

from mendflow.core.model.flow import Flow


def load_python(path: Path) -> dict[str, Flow]:
    raise NotImplementedError
