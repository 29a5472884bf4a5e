"""A job's own code says what it returns. A value that it says was stored, and did not leave, is not believed. SE-2"""

from pathlib import Path

import msgspec

from mendflow.core.model.faults import Category
from mendflow.core.model.ids import JobId
from mendflow.core.model.jobs import Outcome
from mendflow.core.model.values import Value, spilled_value
from mendflow.pilot.slot.messages import FinishedAttempt
from tests.pilot.test_parts import kept, stage


def finished(outputs: Value, spills: list[str]) -> FinishedAttempt:
    outcome = msgspec.Raw(msgspec.msgpack.encode(Outcome(outputs=outputs)))
    return FinishedAttempt(JobId("c/1"), 1, outcome, 1, spills=spills)


def test_a_value_that_the_job_left_is_stored(tmp_path: Path) -> None:
    staging, shelf = stage(tmp_path)
    done = finished({"deep": [spilled_value(kept(b"[1]"))]}, [])
    folder = Path(staging._work_folder.attempt("c/1", 1))
    folder.mkdir(parents=True)
    (folder / "value.json").write_bytes(b"[1]")
    told = staging.keep(msgspec.structs.replace(done, spills=[str(folder / "value.json")]))
    assert msgspec.msgpack.decode(told, type=Outcome).fault is None
    assert shelf.files[kept(b"[1]").sha256] == b"[1]"


def test_a_value_that_it_did_not_leave_is_refused(tmp_path: Path) -> None:
    staging, _ = stage(tmp_path, b"a secret of somebody else")
    told = staging.keep(finished({"deep": [spilled_value(kept(b"a secret of somebody else"))]}, []))
    outcome = msgspec.msgpack.decode(told, type=Outcome)
    assert outcome.fault is not None and (outcome.fault.name, outcome.fault.category) == ("notData", Category.OUTPUT)
    assert outcome.outputs is None
