"""Where the source of a Python module is. The agent asks, too, so it loads nothing of what runs functions."""

import os


def source_file(folder: str, module: str) -> str:
    """The file of a module below a folder, or an empty string."""
    base = os.path.join(folder, *module.split("."))
    for path in (base + ".py", os.path.join(base, "__init__.py")):
        if os.path.isfile(path):
            return path
    return ""
