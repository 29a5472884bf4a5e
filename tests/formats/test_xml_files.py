"""Flow files that end in .xml are known by their root element. FM-2"""

from pathlib import Path

import pytest

from mendflow.core.model.errors import BadFlow
from mendflow.formats import load

JOB = """<JobDefinition xmlns="http://schemas.ggf.org/jsdl/2005/11/jsdl"><JobDescription>
<JobIdentification><JobName>today</JobName></JobIdentification><Application>
<POSIXApplication xmlns="http://schemas.ggf.org/jsdl/2005/11/jsdl-posix"><Executable>/bin/date</Executable>
</POSIXApplication></Application></JobDescription></JobDefinition>"""
PROCESS = '<process name="p" xmlns="http://docs.oasis-open.org/wsbpel/2.0/process/executable"><empty/></process>'


def test_a_job_description_is_read(tmp_path: Path) -> None:
    (tmp_path / "job.xml").write_text(JOB)
    assert load(tmp_path / "job.xml").name == "today"


def test_a_process_is_read_and_told_what_is_wrong_with_it(tmp_path: Path) -> None:
    (tmp_path / "process.xml").write_text(PROCESS)
    with pytest.raises(BadFlow, match="SA00015"):
        load(tmp_path / "process.xml")


def test_anything_else_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "other.xml").write_text("<order/>")
    with pytest.raises(BadFlow, match=r"other.xml:1: <order> is neither a job description in JSDL"):
        load(tmp_path / "other.xml")
