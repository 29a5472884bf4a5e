"""The report says where the inputs of jobs came from."""

import re

import msgspec

from mendflow.core.model.views import AttemptView, ItemView
from mendflow.pages.staging import staging_table, staging_totals
from tests.cli.test_report import an_attempt, an_item


def attempt(**told: int) -> AttemptView:
    return msgspec.structs.replace(an_attempt(1, 0, 1000), **told)


def with_attempts(name: str, *attempts: AttemptView) -> ItemView:
    return an_item(name, 1, list(attempts))


def cells(page: str, row: str) -> list[str]:
    [found] = re.findall(rf"<tr><th>{row}</th>(.*?)</tr>", page)
    return [re.sub("<[^>]*>", "", cell).strip() for cell in re.findall("<td>(.*?)</td>", found)]


def test_cache_hits_are_told_by_job_and_altogether() -> None:  # PJ-9
    merge = attempt(cached_files=3, cached_bytes=3_000_000, shared_files=1, fetched_files=1, fetched_bytes=1_000_000)
    page = staging_table(
        [with_attempts("merge", merge), with_attempts("repack", attempt(fetched_files=1, fetched_bytes=4_000_000))]
    )
    assert cells(page, "merge") == ["1", "3 files, 3.0 MB", "1", "1 file, 1.0 MB", "75%", "0 ms", "-"]
    assert cells(page, "repack")[4] == "0%"
    assert cells(page, "all")[:5] == ["2", "3 files, 3.0 MB", "1", "2 files, 5.0 MB", "38%"]


def test_a_case_without_inputs_has_no_such_table() -> None:
    assert staging_table([with_attempts("a", attempt())]) == ""


def test_empty_files_count_by_their_number() -> None:
    assert staging_totals([attempt(cached_files=3, fetched_files=1)]).share == 0.75
