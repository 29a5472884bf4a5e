"""Builds the message that gives a job to a slot."""

import msgspec

from mendflow.core.model.ids import JobId
from mendflow.core.model.jobs import JobSpec, Measurements
from mendflow.pilot.slot.messages import NIL, FunctionCall, SlotWork

_ENCODER = msgspec.msgpack.Encoder()
_NOTHING = Measurements()


def has_own_folder(spec: JobSpec) -> bool:
    """Whether the agent creates the attempt's folder, because files go into it or are taken from it."""
    return bool(spec.inputs or spec.files or spec.replicas or spec.folders)


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
) -> SlotWork:
    """`folder` is the attempt's, `code` is where a function's module is to be loaded from; `devices` are the GPUs that
    the attempt was given, and `variable` tells it so. `staging_measures` is what was measured while its files were
    fetched. `number` says which try of the job it is; 0: the fence does."""
    number = number or fence
    if devices:
        spec = msgspec.structs.replace(spec, env={**spec.env, variable: devices})
    function = spec.function
    digest = function.code.sha256 if function is not None and function.code is not None else ""
    needs = spec.resources
    return SlotWork(
        job=job,
        fence=fence,
        case=job.rpartition("/")[0],
        item=spec.item,
        command="" if function is not None else spec.command or ":",
        call=_call(job, fence, number, spec, folder=folder, code=code, digest=digest),
        module=function.module if function is not None else "",
        code=f"{digest}{function.imports if function is not None else ''}:{code}",
        env=spec.env if function is None else {},
        files=spec.files,
        own_folder=has_own_folder(spec),
        wall_ms=needs.wall_ms,
        memory_bytes=needs.memory_bytes,
        limits=spec.limits,
        devices=devices,
        publish=spec.publish,
        staging_measures=staging_measures,
        number=number,
        shell=spec.shell,
        unstaged=spec.unstaged,
        file_lists=spec.file_lists,
        inputs=(*spec.inputs, *spec.replicas) if spec.file_lists else (),
        linked=spec.link_inputs and bool(spec.inputs),
    )


def _call(job: JobId, fence: int, number: int, spec: JobSpec, *, folder: str, code: str, digest: str) -> msgspec.Raw:
    function = spec.function
    if function is None:
        return NIL
    call = FunctionCall(
        job=job,
        fence=fence,
        case=job.rpartition("/")[0],
        item=spec.item,
        module=function.module,
        name=function.name,
        folder=code,
        sha256=digest,
        args=spec.args,
        kwargs=spec.kwargs,
        env=spec.env,
        cwd=folder if has_own_folder(spec) else "",
        attempt_folder=folder,
        limits=spec.limits,
        number=number,
        modules=function.modules if function.modules or not function.imports else None,
        beside=function.folder if digest and function.folder != code else "",
    )
    return msgspec.Raw(_ENCODER.encode(call))
