"""An output that is a file is told in words, also where the file could not be written here."""

import msgspec
import pytest

from mendflow.cli.case_ending import CaseEnding
from mendflow.cli.printing import json_text, say
from mendflow.cli.summary import print_summary
from mendflow.core.model.ids import CaseId
from mendflow.core.model.views import CaseView


def test_files_that_were_not_written_here_are_told_by_name_and_size(capsys: pytest.CaptureFixture[str]) -> None:
    file = {"$file": "a" * 64, "bytes": 20_000_000, "name": "big.bin"}
    case = CaseView(
        id=CaseId("f-1"),
        flow="f",
        digest="",
        status="completed",
        started_at=1,
        ended_at=2,
        outputs={"big": file, "all": [file, None], "n": 3},
    )
    print_summary(CaseEnding(case=case, items=[]), {})
    told = capsys.readouterr().out
    assert "  big: big.bin (20.0 MB, stored)\n" in told
    assert '  all: ["big.bin (20.0 MB, stored)",null]\n' in told and "  n: 3\n" in told
    assert "$file" not in told


def test_what_a_job_would_tell_the_terminal_is_in_no_sentence(capsys: pytest.CaptureFixture[str]) -> None:  # SE-7
    say("17:03 warning open a-1\n    job j failed: \x1b]52;c;cm0gLXJm\x07oh \x1b[2Jno\x9b31m")
    assert capsys.readouterr().out == "17:03 warning open a-1\n    job j failed: oh no31m\n"


def test_json_tells_a_terminal_nothing_and_says_the_same() -> None:
    value = {"log": "a\x1b[2J\x9b31m\u202eb\x7f\n"}
    told = json_text(msgspec.json.encode(value).decode())
    assert told.isprintable() and msgspec.json.decode(told) == value
