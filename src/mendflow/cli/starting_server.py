"""A server that stays says from its first moment that it is coming.

It takes a second or more until it has loaded what it needs and holds the lock of its store. A command that is given
meanwhile would find nobody, say so, and might even open the store just when the server wants it. So the server holds a
lock of its own before anything is loaded, until its process ends, however it ends; commands that find it held wait.
Nothing but the standard library is loaded for that."""

import fcntl
import os
import socket
from collections.abc import Mapping, Sequence

STARTING_LOCK = "server.starting.lock"
"""One of those that client/server_file looks at, which would load a whole client."""

OPTION = "--data-dir"


def mark_starting(words: Sequence[str], environment: Mapping[str, str]) -> None:
    """Mark the data folder that the words of `mendflow serve` name, if it is there. If the folder cannot
    be written, no mark is left: what is wrong with it is told when it is opened."""
    folder = data_folder(words, environment)
    try:
        descriptor = os.open(
            os.path.join(folder, STARTING_LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600
        )
    except OSError:
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"process {os.getpid()} on {socket.gethostname()}".encode(), 0)
    except OSError:
        return  # another server has it, or the disk is full


def data_folder(words: Sequence[str], environment: Mapping[str, str]) -> str:
    """The data folder, as the command line will read it from these words."""
    found = environment.get("MENDFLOW_DATA_DIR") or ".mendflow"
    for place, word in enumerate(words):
        if word == OPTION and place + 1 < len(words):
            found = words[place + 1]
        elif word.startswith(f"{OPTION}="):
            found = word.partition("=")[2]
    return found
