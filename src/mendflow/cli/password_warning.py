"""Warns about passwords in command lines, which every user of the machine can read."""

from mendflow.cli.options import STORE_VARIABLE, store_url
from mendflow.cli.printing import say
from mendflow.wiring import has_password


def warn_of_password(store: str) -> None:
    """Warn if the URL of --store has a password."""
    if has_password(store) and store != store_url():
        words = f"everybody on this machine can read the password in --store; give the URL as {STORE_VARIABLE} instead"
        say(words, err=True)
