"""The options that say as whom jobs run: for the command that is a pilot, and for the server that starts one."""

from typing import Annotated, Final

import msgspec
import typer

from mendflow.address_guard import allowed_address
from mendflow.cli.option_groups import OptionTable, options_as
from mendflow.pilot.isolation.options import NOT_ISOLATED, Isolation, isolation_of


class JobRules(msgspec.Struct, frozen=True):
    """As whom jobs run, and which variables they get beside the usual ones."""

    isolation: Isolation = NOT_ISOLATED
    pass_env: tuple[str, ...] = ()

    @property
    def words(self) -> list[str]:
        """As options of a pilot."""
        return [*self.isolation.words, *(word for name in self.pass_env for word in ("--pass-env", name))]

    def hiding(self, *paths: str) -> "JobRules":
        """The same, with these paths hidden from sandboxes."""
        hidden = (*self.isolation.hidden, *(path for path in paths if path))
        return JobRules(msgspec.structs.replace(self.isolation, hidden=hidden), self.pass_env)

    def reaching(self, *addresses: str) -> "JobRules":
        """The same, with these private addresses allowed for files of jobs."""
        for each in addresses:
            allowed_address(each)
        allowed = (*self.isolation.addresses, *addresses)
        return JobRules(msgspec.structs.replace(self.isolation, addresses=allowed), self.pass_env)


USUAL_RULES: Final = JobRules()

RULES: Final[OptionTable] = {
    "jobs_as": (
        Annotated[
            str,
            typer.Option(
                "--jobs-as",
                metavar="ACCOUNT",
                help="The account that jobs run under, or `owner`: that of each job's owner. Only for root.",
                show_default=False,
            ),
        ],
        "",
    ),
    "accounts": (
        Annotated[
            list[str] | None,
            typer.Option(
                "--accounts",
                metavar="NAMES",
                help="With --jobs-as owner: the accounts that jobs may have, such as ada,grace.",
                show_default=False,
            ),
        ],
        None,
    ),
    "sandbox": (
        Annotated[
            str,
            typer.Option(
                "--sandbox",
                metavar="KIND",
                help="Keep jobs from each other and the pilot: bubblewrap, or containers (only jobs that name one).",
            ),
        ],
        "none",
    ),
    "sandbox_network": (
        Annotated[
            str, typer.Option("--sandbox-network", metavar="KIND", help="The network in the sandbox: host or none.")
        ],
        "host",
    ),
    "sandbox_show": (
        Annotated[
            list[str] | None,
            typer.Option(
                "--sandbox-show",
                metavar="PATH",
                help="What jobs in the sandbox may read beside the system's programs; can be repeated.",
                show_default=False,
            ),
        ],
        None,
    ),
    "pass_env": (
        Annotated[
            list[str] | None,
            typer.Option(
                "--pass-env",
                metavar="NAME",
                help="A variable that jobs get beside the usual ones, or a pattern such as 'DATA_*'; can be repeated.",
                show_default=False,
            ),
        ],
        None,
    ),
}


def rules_of(
    jobs_as: str,
    accounts: list[str] | None,
    sandbox: str,
    sandbox_network: str,
    sandbox_show: list[str] | None,
    pass_env: list[str] | None,
) -> JobRules:
    """What these options say."""
    isolation = isolation_of(
        jobs_as=jobs_as,
        accounts=accounts or (),
        sandbox=sandbox,
        network=sandbox_network,
        shown=sandbox_show or (),
    )
    return JobRules(isolation, tuple(pass_env or ()))


with_job_rules = options_as("rules", RULES, rules_of)
"""The command, with these options in place of its parameter `rules`."""
