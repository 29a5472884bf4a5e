"""Builds the message that gives a job to a slot."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from mendflow.core.model.ids import JobId
from mendflow.core.model.jobs import JobSpec, Measurements
from mendflow.pilot.containers.start import ContainerStart
from mendflow.pilot.slot.messages import NIL, AttemptSecrets, FunctionCall, SlotWork
from mendflow.pilot.software.ready import NOTHING_LOADED, ReadySoftware

_ENCODER = msgspec.msgpack.Encoder()
_NOTHING = Measurements()
NO_SECRETS: Final[Mapping[str, str]] = {}


def has_own_folder(spec: JobSpec) -> bool:
    """Whether the agent creates the attempt's folder, because files go into it or are taken from it."""
    needs = spec.inputs or spec.files or spec.replicas or spec.folders
    return bool(needs) or any(use.path for use in spec.secrets)


def secrets_of(spec: JobSpec, values: Mapping[str, str]) -> AttemptSecrets:
    """What the job gets of the values of secrets that came with it."""
    return AttemptSecrets(
        variables={use.variable: values[use.name] for use in spec.secrets if use.variable and use.name in values},
        files={use.path: values[use.name] for use in spec.secrets if use.path and use.name in values},
    )


def build_work(
    job: JobId,
    fence: int,
    spec: JobSpec,
    *,
    folder: str,
    code: str,
    devices: str = "",
    variable: str = "",
    staging_measures: Measurements = _NOTHING,
    number: int = 0,
    software: ReadySoftware = NOTHING_LOADED,
    container: ContainerStart | None = None,
    secrets: Mapping[str, str] = NO_SECRETS,
    values: Sequence[str] = (),
) -> SlotWork:
    """`folder` is the attempt's, `code` is where a function's module is to be loaded from; `devices` are the GPUs that
    the attempt was given, and `variable` tells it so. `staging_measures` is what was measured while its files were
    fetched. `number` says which try of the job it is; 0: the fence does. `software` is what was loaded for it,
    `container` what its command runs in, `secrets` are the values of those that it uses, and `values` the digests
    of what its arguments refer to."""
    number = number or fence
    if software.env:
        spec = msgspec.structs.replace(spec, env={**spec.env, **software.env})
    own_secrets = secrets_of(spec, secrets)
    if own_secrets.variables:
        spec = msgspec.structs.replace(spec, env={**spec.env, **own_secrets.variables})
    if devices:
        spec = msgspec.structs.replace(spec, env={**spec.env, variable: devices})
    function = spec.function
    digest = function.code.sha256 if function is not None and function.code is not None else ""
    needs = spec.resources
    return SlotWork(  # by place, as a call with more than 15 names takes four times as long
        job,
        fence,
        job.rpartition("/")[0],
        spec.item,
        "" if function is not None else spec.command or ":",
        _call(job, fence, number, spec, own_secrets, folder=folder, code=code, digest=digest, python=software.python),
        function.module if function is not None else "",
        f"{digest}{function.imports if function is not None else ''}:{code}",
        spec.env if function is None else {},
        spec.files,
        has_own_folder(spec),
        needs.wall_ms,
        needs.memory_bytes,
        spec.limits,
        devices,
        spec.publish,
        staging_measures=staging_measures,
        number=number,
        shell=spec.shell,
        unstaged=spec.unstaged,
        file_lists=spec.file_lists,
        inputs=(*spec.inputs, *spec.replicas) if spec.file_lists else (),
        linked=spec.link_inputs and bool(spec.inputs),
        container=container,
        secrets=own_secrets,
        owner=spec.account or spec.owner,
        values=tuple(values),
    )


def _call(
    job: JobId,
    fence: int,
    number: int,
    spec: JobSpec,
    secrets: AttemptSecrets,
    *,
    folder: str,
    code: str,
    digest: str,
    python: str,
) -> msgspec.Raw:
    function = spec.function
    if function is None:
        return NIL
    call = FunctionCall(
        job,
        fence,
        job.rpartition("/")[0],
        spec.item,
        function.module,
        function.name,
        code,
        digest,
        args=spec.args,
        kwargs=spec.kwargs,
        env=spec.env,
        cwd=folder if has_own_folder(spec) else "",
        attempt_folder=folder,
        limits=spec.limits,
        number=number,
        modules=function.modules if function.modules or not function.imports else None,
        beside=function.folder if digest and function.folder != code else "",
        python=python,
        secrets=tuple(use.variable for use in spec.secrets if use.variable),
        hidden=(*secrets.variables.values(), *secrets.files.values()),
    )
    return msgspec.Raw(_ENCODER.encode(call))
