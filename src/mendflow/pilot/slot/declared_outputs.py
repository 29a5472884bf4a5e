"""Checks declared output files: each must be a plain file in the job's own folder.

A job may leave anything in their place. Reading a pipe would block, and a socket or device cannot be stored; a link to
a file outside would pass off as the job's output what is not."""

import os
import stat

from mendflow.core.model.faults import AttemptStage, Category, Fault

_KINDS = {
    stat.S_IFDIR: "is a folder, not a file",
    stat.S_IFIFO: "is a named pipe, not a file",
    stat.S_IFSOCK: "is a socket, not a file",
    stat.S_IFCHR: "is a device, not a file",
    stat.S_IFBLK: "is a device, not a file",
}


def missing_files(files: dict[str, str], folder: str) -> Fault | None:
    """The fault of a job that did not leave its declared outputs."""
    for name, path in files.items():
        if wrong := _wrong_with(path, folder):
            message = f"the declared output {name} ({path}) {wrong}"
            return Fault(
                name="missingOutput",
                category=Category.OUTPUT,
                message=message,
                stage=AttemptStage.STAGE_OUT,
                file=path,
                data={"output": name},
            )
    return None


def _wrong_with(path: str, folder: str) -> str:
    full = os.path.join(folder, path)
    try:
        kind = stat.S_IFMT(os.stat(full).st_mode)
    except OSError as error:
        if os.path.islink(full):
            return f"is a link to {os.readlink(full)}, which leads nowhere"
        return "is not there" if isinstance(error, FileNotFoundError) else f"cannot be read: {error.strerror}"
    if kind != stat.S_IFREG:
        return _KINDS.get(kind, "is not a file")
    real, own = os.path.realpath(full), os.path.realpath(folder)
    if not real.startswith(own + os.sep):
        return f"is a link to {real}, outside of the job's folder: copy the file instead"
    return ""
