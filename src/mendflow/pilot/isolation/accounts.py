"""The account that a job runs under, where that is not the pilot's."""

import os
import pwd
import stat
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

OWNER: Final = "owner"
"""Instead of the name of an account: that of whoever owns the job."""

_OF_A_SESSION: Final = ("XDG_RUNTIME_DIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "TMP", "TEMP")


class NoAccount(Exception):
    """There is no account that the job may run under."""


class Account(NamedTuple):
    name: str
    uid: int
    gid: int
    home: str
    shell: str

    def words(self) -> list[str]:
        """What starts a program under this account, with its groups and without any privilege that it could use."""
        return [
            "setpriv",
            f"--reuid={self.uid}",
            f"--regid={self.gid}",
            "--init-groups",
            "--inh-caps=-all",
            "--bounding-set=-all",
            "--no-new-privs",
            "--",
        ]

    def variables(self, environment: dict[str, str]) -> dict[str, str]:
        """An environment as this account has it."""
        kept = {name: value for name, value in environment.items() if name not in _OF_A_SESSION}
        return kept | {"HOME": self.home, "USER": self.name, "LOGNAME": self.name, "SHELL": self.shell}


def account_named(name: str) -> Account:
    try:
        found = pwd.getpwnam(name)
    except KeyError:
        raise NoAccount(f"there is no account {name!r} on this machine: create it, or name another") from None
    if found.pw_uid == 0:
        raise NoAccount(f"{name!r} is an account of root, and jobs may not be root: name another")
    return Account(found.pw_name, found.pw_uid, found.pw_gid, found.pw_dir, found.pw_shell or "/bin/sh")


def account_of_job(jobs_as: str, accounts: Sequence[str], owner: str) -> Account | None:
    """The account that a job of this owner gets; None: the pilot's own."""
    if not jobs_as:
        return None
    if jobs_as != OWNER:
        return account_named(jobs_as)
    if owner not in accounts:
        listed = ", ".join(accounts)
        raise NoAccount(
            f"the job belongs to {owner or 'nobody'!r}, for whom this pilot has no account (it has {listed}): ask"
            " whoever runs the pilot to add it to --accounts"
        )
    return account_named(owner)


def give_tree(folder: str, account: Account) -> None:
    """Let an account own a folder and everything in it. Links are given, not what they lead to.

    Another job of the account can change a folder as soon as it is given, and put a link in its place. So what is in a
    folder is given before the folder itself: everything on the way to it is still the pilot's then."""
    for path in reversed([folder, *_below(folder)]):
        os.lchown(path, account.uid, account.gid)


def _below(folder: str) -> Iterator[str]:
    """What is in a folder, each folder before what is in it."""
    for at, folders, names in os.walk(folder):
        for name in (*folders, *names):
            yield os.path.join(at, name)


def reclaim_tree(folder: str, account: Account) -> None:
    """Own a folder or file again that a job of the account had, so that nobody else can change it now.

    Another job of the account may still be in one of the folders, and would put links in place of what is there. So a
    folder is shut to all others before anything in it is looked at: everything on the way to that is the pilot's then.
    A file of somebody else's, which the job has made a link to, is left alone."""
    waiting = [folder]
    while waiting:
        path = waiting.pop()
        try:
            mode = _reclaim(path, account)
            if stat.S_ISDIR(mode):
                os.chmod(path, 0o700)
                waiting += [os.path.join(path, name) for name in os.listdir(path)]
            elif stat.S_ISREG(mode) and mode & (stat.S_ISUID | stat.S_ISGID):
                os.chmod(path, stat.S_IMODE(mode) & 0o777)
        except OSError:
            continue


def _reclaim(path: str, account: Account) -> int:
    """Own what is at a path, unless it is somebody else's file; returns its mode, 0 if it was left alone."""
    found = os.lstat(path)
    if not stat.S_ISDIR(found.st_mode) and found.st_uid != account.uid:
        return 0
    os.lchown(path, os.geteuid(), os.getegid())
    return found.st_mode
