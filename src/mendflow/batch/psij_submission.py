"""The process that submits pilots through PSI/J: submissions in, one line per answer out.

It stops at the first that is refused, and does not mention the rest."""

import os
import sys
from datetime import timedelta
from pathlib import Path

import msgspec
from psij import Job, JobAttributes, JobExecutor, JobSpec, ResourceSpecV1
from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutorConfig

from mendflow.batch.psij import SubmissionRequest, SubmissionResult
from mendflow.core.model.sites import Site

NEVER_S = 10**9
"""PSI/J would poll its jobs; this process has ended long before."""

NAME_WORDS = {"slurm": "job-name", "lsf": "J", "pbs": "N"}
"""How each batch system gets a job name: PSI/J's own templates look for it in the wrong place."""


def main() -> None:
    wish = msgspec.json.decode(sys.stdin.buffer.read(), type=SubmissionRequest)
    os.environ["SBATCH_NO_REQUEUE"] = "1"  # a pilot that a batch system requeues would run twice
    config = BatchSchedulerExecutorConfig(
        work_directory=Path(wish.folder),
        queue_polling_interval=NEVER_S,
        initial_queue_polling_delay=NEVER_S,
        keep_files=True,
    )
    executor = JobExecutor.get_instance(wish.site.batch.kind, config=config)
    for name, script in wish.scripts.items():
        job = Job(specification(wish.site, name, script))
        try:
            executor.submit(job)
        except Exception as error:  # noqa: BLE001 - whatever PSI/J raises is the answer to this submission
            say(SubmissionResult(name, why=" ".join(str(error).split())[:500] or repr(error)))
            break
        say(SubmissionResult(name, native=job.native_id or "?"))
    sys.stdout.flush()
    os._exit(0)  # without waiting for PSI/J's threads


def say(result: SubmissionResult) -> None:
    print(msgspec.json.encode(result).decode(), flush=True)


def specification(site: Site, name: str, script: str) -> JobSpec:
    return JobSpec(
        name=name,
        executable="/bin/sh",
        arguments=[script],
        directory=str(Path(script).parent),
        resources=resources(site),
        attributes=attributes(site, name),
        launcher="single",
    )


def attributes(site: Site, name: str) -> JobAttributes:
    batch, options = site.batch, {**site.batch.options, NAME_WORDS[site.batch.kind]: name}
    if batch.kind == "lsf" and site.pilots.gpus:
        options.setdefault("gpu", f"num={site.pilots.gpus}/host")
    made = JobAttributes(
        queue_name=batch.queue or None,
        account=batch.account or None,
        reservation_id=batch.reservation or None,
        custom_attributes={f"{batch.kind}.{word}": text for word, text in options.items()},
    )
    if batch.wall_ms:
        made.duration = timedelta(milliseconds=batch.wall_ms)
    else:
        made.duration = None  # type: ignore[assignment]  # PSI/J then leaves the time to the batch system
    return made


def resources(site: Site) -> ResourceSpecV1:
    """A pilot is one process with so many processors. For LSF and PBS, PSI/J counts processes and not processors: there
    as many are requested on one machine, and one of them is started."""
    pilot = site.pilots
    if site.batch.kind == "slurm":
        return ResourceSpecV1(
            process_count=1,
            cpu_cores_per_process=pilot.cpus,
            gpu_cores_per_process=pilot.gpus or None,
            memory=pilot.memory_bytes or None,
        )
    return ResourceSpecV1(node_count=1, process_count=pilot.cpus, memory=pilot.memory_bytes or None)


if __name__ == "__main__":
    main()
