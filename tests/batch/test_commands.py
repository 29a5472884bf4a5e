"""Commands of batch systems: bounded in time and in words, and what one did not say is not taken for an answer."""

import asyncio
import os
from pathlib import Path

import msgspec
import pytest

from mendflow import event_loop
from mendflow.batch import commands
from mendflow.batch.commands import environment_for, output_of, run_command
from mendflow.batch.contract import Launch
from mendflow.batch.gridengine import GridEngineBatchSystem
from mendflow.batch.psij import PsijBatchSystem
from mendflow.batch.queue_commands import QUEUES
from mendflow.core.model.sites import (
    BatchJobStatus,
    BatchSettings,
    BatchSystemUnavailable,
    Site,
    SubmitRejected,
    SubmitSkipped,
    SubmitUncertain,
)
from tests.patience import PATIENCE_S

SHORT_MS = 500


def site(tmp_path: Path, kind: str = "slurm", **scripts: str) -> Site:
    """A site whose batch system's commands are these scripts."""
    folder = tmp_path / "commands"
    folder.mkdir(exist_ok=True)
    for name, text in scripts.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    settings = {"kind": kind, "commands": str(folder), "timeout_ms": SHORT_MS, "wall_ms": 600_000}
    return Site(name="t0", batch=BatchSettings(**settings))  # type: ignore[arg-type]  # as a test gives them


async def test_a_command_that_hangs_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    said = await run_command(site(tmp_path, hang="echo $$; sleep 600 & echo $!; wait"), ["hang"])
    assert said.code is None
    for pid in said.out.split():
        async with asyncio.timeout(PATIENCE_S):
            while _lives(int(pid)):
                await asyncio.sleep(0.05)


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_command_that_ends_without_reading_what_it_is_given_is_no_error(tmp_path: Path) -> None:  # PJ-8
    """On the event loop of servers, which tells a writer that the reader is gone in its own way."""

    async def ended() -> list[int | None]:
        where = site(tmp_path, deaf="exec true")
        return [(await run_command(where, ["deaf"], given=b"x" * 200_000)).code for _ in range(30)]

    assert event_loop.run(ended()) == [0] * 30


async def test_a_command_that_does_not_stop_talking_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "OUTPUT_BYTES_MAX", 100_000)
    with pytest.raises(BatchSystemUnavailable, match="printed too much"):
        await output_of(site(tmp_path, talk="yes"), ["talk"])


async def test_a_command_that_is_not_there_is_an_answer_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(BatchSystemUnavailable, match="no-such-command cannot be run: No such file"):
        await output_of(site(tmp_path), ["no-such-command"])


@pytest.mark.parametrize(
    "answer",
    ["exit 1", "echo 'slurm_load_jobs error: Unable to contact' >&2; exit 1", "echo garbage", "sleep 60"],
)
async def test_a_queue_that_does_not_answer_as_it_should_is_not_taken_for_empty(tmp_path: Path, answer: str) -> None:
    with pytest.raises(BatchSystemUnavailable):
        await QUEUES["slurm"].list_jobs(site(tmp_path, squeue=answer))


async def test_of_several_by_one_name_the_one_that_runs_counts(tmp_path: Path) -> None:
    rows = "mendflow-t0-1-a|7|CANCELLED|None\nmendflow-t0-1-a|9|RUNNING|None\nmendflow-t0-1-a|8|PENDING|None"
    strangers = "mendflow-t00-1-a|10|RUNNING|None\nsomebody|11|RUNNING|None"
    found = await QUEUES["slurm"].list_jobs(site(tmp_path, squeue=f"cat <<'END'\n{rows}\n{strangers}\nEND"))
    assert found == {"mendflow-t0-1-a": BatchJobStatus("running", "9", "running")}


async def test_a_queue_without_jobs_is_empty(tmp_path: Path) -> None:
    assert await QUEUES["slurm"].list_jobs(site(tmp_path, squeue="true")) == {}
    assert await QUEUES["lsf"].list_jobs(site(tmp_path, "lsf", bjobs="echo No job found >&2; exit 255")) == {}
    assert await QUEUES["pbs"].list_jobs(site(tmp_path, "pbs", qstat="echo '{}'")) == {}


def launches(tmp_path: Path) -> list[Launch]:
    return [Launch(f"mendflow-t0-{number}-a", tmp_path / "sites" / str(number)) for number in (1, 2, 3)]


@pytest.mark.full
@pytest.mark.parametrize(
    ("sbatch", "kind"),
    [
        ("echo 'sbatch: error: invalid partition specified' >&2; exit 1", SubmitRejected),
        ("echo 'sbatch: error: Unable to contact slurm controller' >&2; exit 1", SubmitUncertain),
        ("echo 'sbatch: error: Socket timed out on send/recv operation' >&2; exit 1", SubmitUncertain),
        ("sleep 600", SubmitUncertain),
    ],
)
async def test_a_submission_without_an_answer_may_have_been_taken_and_the_rest_are_not_tried(
    tmp_path: Path, sbatch: str, kind: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mendflow.batch.psij.START_MS", 5_000)
    one, two, three = (await PsijBatchSystem().submit(site(tmp_path, sbatch=sbatch), launches(tmp_path))).values()
    assert isinstance(one, kind) and isinstance(two, SubmitSkipped) and isinstance(three, SubmitSkipped)


async def test_without_psij_it_is_said_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "psij.py").write_text("raise ImportError(\"No module named 'psij'\")")
    bare = site(tmp_path)
    bare = msgspec.structs.replace(bare, batch=msgspec.structs.replace(bare.batch, environment=shadow(tmp_path)))
    one, *_ = (await PsijBatchSystem().submit(bare, launches(tmp_path))).values()
    assert isinstance(one, SubmitRejected) and "pip install 'mendflow[batch]'" in one.why


def shadow(folder: Path) -> dict[str, str]:
    """What is in this folder goes before what is installed."""
    return {"PYTHONPATH": f"{folder}:{os.environ.get('PYTHONPATH', '')}"}


async def test_what_was_taken_before_a_refusal_is_taken(tmp_path: Path) -> None:
    counter = tmp_path / "count"
    sbatch = f"echo x >> {counter}; [ $(wc -l < {counter}) -lt 2 ] && echo Submitted batch job 5 || exit 1"
    one, two, three = (await PsijBatchSystem().submit(site(tmp_path, sbatch=sbatch), launches(tmp_path))).values()
    assert [type(each).__name__ for each in (one, two, three)] == ["SubmitAccepted", "SubmitRejected", "SubmitSkipped"]
    assert counter.read_text().count("x") == 2


def test_commands_get_what_they_need_of_the_environment_and_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MENDFLOW_TOKEN", "secret")
    monkeypatch.setenv("MENDFLOW_STORE", "postgresql://me:secret@db/")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("SITE_KEY", "given")
    monkeypatch.setenv("SLURM_CONF", "/etc/slurm.conf")
    settings = BatchSettings(environment={"KEY": "env:SITE_KEY", "PLAIN": "text"}, commands="/opt/slurm/bin")
    made = environment_for(Site(name="t0", batch=settings))
    assert made["KEY"] == "given" and made["PLAIN"] == "text" and made["SLURM_CONF"] == "/etc/slurm.conf"
    assert made["PATH"] == f"/opt/slurm/bin:{os.environ['PATH']}"
    assert "secret" not in " ".join(made.values())


async def test_grid_engine_gets_a_folder_with_blanks_as_one_word_and_the_words_of_options_apart(tmp_path: Path) -> None:
    told = tmp_path / "told"
    asked = site(tmp_path, "gridengine", qsub=f'printf "%s\\n" "$@" > {told}; echo 7')
    options = {"pe": "mpi 4", "binding": "linear 2", "o": "/logs/a b"}
    asked = msgspec.structs.replace(asked, batch=msgspec.structs.replace(asked.batch, options=options))
    launch = Launch("p", tmp_path / "a b" / "work")
    await GridEngineBatchSystem().submit(asked, [launch])
    words = told.read_text().splitlines()
    after = {word: words[number + 1 :] for number, word in enumerate(words)}
    assert after["-wd"][:2] == [str(launch.folder), "-o"]
    assert after["-o"][:2] == ["/logs/a b", "-j"]
    assert after["-pe"][:2] == ["mpi", "4"] and after["-binding"][:2] == ["linear", "2"]
