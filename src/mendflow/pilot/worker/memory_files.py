"""Files in memory that have no name: only a process that has, or inherits, the descriptor can open one."""

import os
import tempfile


def new_memory_file() -> int:
    """A descriptor of an empty file."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("mendflow")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def take_content(descriptor: int) -> bytes:
    """All that is in the file, from its beginning. Closes it."""
    try:
        os.lseek(descriptor, 0, os.SEEK_SET)
        with open(descriptor, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(descriptor)
