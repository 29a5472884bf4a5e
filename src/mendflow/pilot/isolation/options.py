"""What a pilot was told about as whom its jobs run, and whether that can be done here."""

import os
import shutil
from collections.abc import Iterable
from typing import Final, Literal, get_args

import msgspec

from mendflow.address_guard import allowed_address
from mendflow.core.model.errors import InvalidRequest
from mendflow.pilot.isolation.accounts import OWNER, NoAccount, account_named

Sandbox = Literal["none", "bubblewrap", "containers"]
SandboxNetwork = Literal["host", "none"]
ROOTS_SANDBOX_ACCOUNT: Final = "nobody"
"""A sandbox that root starts would have files of root in it, such as /etc/shadow. So its jobs have another account."""

THREE_WAYS: Final = (
    "--jobs-as ACCOUNT runs them under another account (for a server or pilot that root starts), --sandbox bubblewrap"
    " lets each see nothing but its folder and the system's programs, --sandbox containers takes only jobs that name a"
    " container"
)


class Isolation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`jobs_as` is the account of all jobs, or `owner`: then each job runs under the account that is called as its
    owner is, if that is among `accounts`. `hidden` are paths that no sandbox shows, `shown` those that it shows beside
    the system's, to be read. `addresses` are private ones that files are transferred from and to all the same."""

    jobs_as: str = ""
    accounts: tuple[str, ...] = ()
    sandbox: Sandbox = "none"
    network: SandboxNetwork = "host"
    hidden: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()

    @property
    def is_set(self) -> bool:
        """Whether jobs are kept from what is the pilot's."""
        return bool(self.jobs_as) or self.sandbox != "none"

    @property
    def confines(self) -> bool:
        """Whether slots start jobs otherwise than as themselves."""
        return bool(self.jobs_as) or self.sandbox == "bubblewrap"

    @property
    def shares_account(self) -> bool:
        """Whether jobs that are kept apart have the pilot's own account, and its network."""
        return self.is_set and not self.jobs_as and self.network == "host"

    @property
    def words(self) -> list[str]:
        """As options of a pilot."""
        return [
            *(["--jobs-as", self.jobs_as] if self.jobs_as else []),
            *(["--accounts", ",".join(self.accounts)] if self.accounts else []),
            *(["--sandbox", self.sandbox] if self.sandbox != "none" else []),
            *(["--sandbox-network", self.network] if self.network != "host" else []),
            *(word for path in self.hidden for word in ("--sandbox-hide", path)),
            *(word for path in self.shown for word in ("--sandbox-show", path)),
            *(word for address in self.addresses for word in ("--allow-address", address)),
        ]


NOT_ISOLATED: Final = Isolation()


def isolation_of(
    *,
    jobs_as: str = "",
    accounts: Iterable[str] = (),
    sandbox: str = "",
    network: str = "",
    hidden: Iterable[str] = (),
    shown: Iterable[str] = (),
    addresses: Iterable[str] = (),
) -> Isolation:
    """What options say. Raises InvalidRequest for what cannot be meant."""
    sandbox = {"bwrap": "bubblewrap", "container": "containers", "": "none"}.get(sandbox, sandbox)
    if sandbox not in get_args(Sandbox):
        raise InvalidRequest(f"--sandbox {sandbox!r} is not known; there are {', '.join(get_args(Sandbox))}")
    if (network or "host") not in get_args(SandboxNetwork):
        raise InvalidRequest(f"--sandbox-network {network!r} is not known; there are host and none")
    if network == "none" and sandbox != "bubblewrap":
        raise InvalidRequest("--sandbox-network none is for --sandbox bubblewrap; containers have their own `network`")
    named = tuple(dict.fromkeys(name.strip() for text in accounts for name in text.split(",") if name.strip()))
    if jobs_as == OWNER and not named:
        raise InvalidRequest("--jobs-as owner needs --accounts: the accounts that jobs may have, such as ada,grace")
    if named and jobs_as != OWNER:
        raise InvalidRequest("--accounts is for --jobs-as owner")
    addresses = tuple(addresses)
    for each in addresses:
        allowed_address(each)
    if not jobs_as and sandbox == "bubblewrap" and os.geteuid() == 0:
        jobs_as = ROOTS_SANDBOX_ACCOUNT
    return msgspec.convert(
        {
            "jobs_as": jobs_as,
            "accounts": named,
            "sandbox": sandbox,
            "network": network or "host",
            "hidden": tuple(os.path.abspath(path) for path in hidden if path),
            "shown": tuple(os.path.abspath(path) for path in shown if path),
            "addresses": addresses,
        },
        Isolation,
    )


def why_impossible(isolation: Isolation) -> str:
    """Why jobs cannot be started here in this way; empty if they can, as far as can be seen without trying."""
    if isolation.jobs_as:
        if os.geteuid() != 0:
            return (
                f"--jobs-as {isolation.jobs_as} needs a pilot that root starts: only root can give a process another"
                " account; without root, --sandbox bubblewrap keeps jobs apart"
            )
        if not shutil.which("setpriv"):
            return "--jobs-as needs the program setpriv, of the package util-linux: install it"
        try:
            for name in isolation.accounts or (isolation.jobs_as,):
                account_named(name)
        except NoAccount as error:
            return str(error)
    if isolation.sandbox == "bubblewrap" and not shutil.which("bwrap"):
        return "--sandbox bubblewrap needs the program bwrap, of the package bubblewrap: install it"
    return ""
