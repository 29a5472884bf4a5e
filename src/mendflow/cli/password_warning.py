"""What everybody on a machine can read: the words of a command."""

from mendflow.cli.options import STORE_VARIABLE, store_url
from mendflow.cli.printing import say
from mendflow.wiring import has_password


def warn_of_password(store: str) -> None:
    """Say so if the URL that was given by --store has one."""
    if has_password(store) and store != store_url():
        words = f"everybody on this machine can read the password in --store; give the URL as {STORE_VARIABLE} instead"
        say(words, err=True)
