"""Documents in the manner of other grid systems: each is a job, or refused with its line and the reason."""

from pathlib import Path

import pytest

from mendflow.core.data.url_passwords import password_in
from mendflow.core.engine.plan import compile_flow
from mendflow.core.engine.remarks import remarks_on
from mendflow.core.model.errors import BadFlow
from mendflow.core.model.flow import JobActivity
from mendflow.formats.jsdl import read_jsdl
from tests.formats.jsdl.middleware import DOCUMENTS, GENESIS, MiddlewareDocument


@pytest.mark.parametrize("given", DOCUMENTS, ids=[each.system for each in DOCUMENTS])
def test_what_other_systems_write_is_a_job_or_refused_with_line_and_reason(
    given: MiddlewareDocument, tmp_path: Path
) -> None:  # FM-2
    text = given.text.replace("FOLDER", str(tmp_path))
    if not given.told:
        compile_flow(read_jsdl(text, tmp_path / "job.jsdl"))
        return
    with pytest.raises(BadFlow) as refused:
        read_jsdl(text, tmp_path / "job.jsdl")
    found = [f"{problem.line}: {problem.message}" for problem in refused.value.problems]
    for told in given.told:
        assert any(each.startswith(told) for each in found), found
    assert len(found) == len(given.told), found


def test_a_job_whose_files_need_a_program_says_so_when_it_is_checked() -> None:  # FM-2
    flow = read_jsdl(GENESIS.text, "/nowhere/job.jsdl")
    assert isinstance(flow.body, JobActivity)
    (source,) = flow.body.inputs.values()
    assert isinstance(source, str) and source.startswith("scp://ann:") and password_in(source)
    (remark,) = [each for each in remarks_on(flow) if "scp://" in each]
    assert "the program `sftp`" in remark and "ann" not in remark and "en@" not in remark
