"""Makes the software of an attempt ready: the variables that its process gets, and the interpreter of its function."""

import os
from collections.abc import Callable
from pathlib import Path

import msgspec

from mendflow.core.model.faults import AttemptStage, Category, Fault
from mendflow.core.model.jobs import JobSpec
from mendflow.core.model.software import Software
from mendflow.core.model.values import FileRef
from mendflow.pilot.files.staging_faults import StagingFailed
from mendflow.pilot.isolation.options import NOT_ISOLATED, Isolation
from mendflow.pilot.isolation.variables import ALL_VARIABLES, OF_BUILDERS, PassedVariables
from mendflow.pilot.software.environments import Environments, MadeEnvironment, environments_folder, own_python
from mendflow.pilot.software.modules import ClusterModules
from mendflow.pilot.software.ready import ReadySoftware


class LoadedSoftware(msgspec.Struct, frozen=True):
    """What is ready on this host: the variables of modules, and an environment."""

    env: dict[str, str]
    environment: MadeEnvironment | None


class SoftwareLoader:
    """`fetch` puts a stored file at a path; `wanted` says whether the pilot still wants to start jobs."""

    def __init__(
        self,
        fetch: Callable[[FileRef, str], None],
        wanted: Callable[[], bool],
        folder: Path | None = None,
        *,
        variables: PassedVariables = ALL_VARIABLES,
        isolation: Isolation = NOT_ISOLATED,
    ) -> None:
        """`variables` says what programs get of this process's environment. With `isolation` nothing is installed: what
        is installed may run code of its own."""
        self._environments = Environments(
            folder or environments_folder(), fetch, lambda: variables.select(os.environ, OF_BUILDERS)
        )
        self._isolation = isolation
        self._modules = ClusterModules(lambda: variables.select(os.environ))
        self._wanted = wanted
        self._is_tidy = False

    def load(self, software: Software) -> LoadedSoftware:
        """Make what a job names. Blocks. Raises StagingFailed."""
        env = self._modules.load(software.modules) if software.modules else {}
        if not software.has_environment:
            return LoadedSoftware(env, None)
        if self._isolation.is_set:
            raise StagingFailed(_not_installed(software))
        if not self._is_tidy:
            self._is_tidy = True
            self._environments.remove_unused()
        return LoadedSoftware(env, self._environments.make(software, self._wanted))


def ready_for(spec: JobSpec, loaded: LoadedSoftware) -> ReadySoftware:
    """What the job's process gets. Raises StagingFailed if its function cannot run there."""
    made, software = loaded.environment, spec.software
    if made is None or software is None:
        return ReadySoftware(loaded.env)
    if spec.function is not None and not made.can_run_functions:
        raise StagingFailed(_other_python(software, made))
    return ReadySoftware(loaded.env | variables(made, software, loaded.env, spec.env), made.interpreter)


def variables(made: MadeEnvironment, software: Software, env: dict[str, str], own: dict[str, str]) -> dict[str, str]:
    """What a process has to know to be in an environment: what `activate` would set."""
    path = own.get("PATH") or env.get("PATH") or os.environ.get("PATH", os.defpath)
    found = {"PATH": f"{made.prefix}/bin:{path}"}
    if software.kind == "conda":
        found |= {"CONDA_PREFIX": made.prefix, "CONDA_DEFAULT_ENV": made.prefix}
    else:
        found["VIRTUAL_ENV"] = made.prefix
    for name in ("PYTHONHOME", "PYTHONPATH"):
        if name in os.environ and name not in own:
            found[name] = ""
    return found


def _not_installed(software: Software) -> Fault:
    return Fault(
        name="badEnvironment",
        category=Category.INPUT,
        message=f"the environment ({software.shown}) is not made here: this pilot keeps jobs apart from itself, and"
        " what is installed would run as the pilot; let the job name a container, or modules of the cluster",
        stage=AttemptStage.STAGE_IN,
        data={"lasting": True},
    )


def _other_python(software: Software, made: MadeEnvironment) -> Fault:
    has = f"Python {made.python}" if made.python else "no Python"
    return Fault(
        name="badEnvironment",
        category=Category.INPUT,
        message=f"the environment ({software.shown}) has {has} and this pilot {own_python()}: a function runs only in "
        f"an environment with the pilot's version; leave `python` away, or write the job as a command",
        stage=AttemptStage.STAGE_IN,
        data={"lasting": True},
    )
