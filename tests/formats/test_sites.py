"""Site files: settings as people write them, and what is wrong with them in a sentence."""

import re
from pathlib import Path

import pytest

from mendflow.core.model.errors import BadFile
from mendflow.formats.sites import load_site, read_site

PAGE = Path(__file__).parents[2] / "docs" / "do" / "sites.md"


def test_times_and_sizes_are_written_without_their_units_in_the_name(tmp_path: Path) -> None:
    file = tmp_path / "site.yaml"
    file.write_text(
        "name: a\nlost: 2 min\nbatch: {kind: slurm, wall: 4h}\npilots: {memory: 8 GB, checks: {disk: 1 GB}}\n"
    )
    site = load_site(file)
    assert site.lost_ms == 120_000 and site.batch.wall_ms == 4 * 3_600_000
    assert site.pilots.memory_bytes == 8 * 10**9 and site.pilots.checks.disk_bytes == 10**9


def test_the_whole_names_with_numbers_are_understood_too() -> None:
    assert read_site("name: a\nlost_ms: 5\nbatch: {timeout: 7000}\n").batch.timeout_ms == 7000


def test_every_site_on_the_page_about_sites_is_one() -> None:
    blocks = re.findall(r"```yaml[^\n]*\n(.*?)```", PAGE.read_text(), re.DOTALL)
    sites = [read_site(block) for block in blocks if "max_pilots" in block]
    assert [site.batch.kind for site in sites] == ["local", "slurm"]
    assert sites[1].pilots.checks.executables == ("singularity",) and sites[1].batch.options["qos"] == "normal"


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("name: a\nmax_pilot: 3\n", "did you mean `max_pilots`"),
        ("name: a\nbatch: {wal: 4h}\n", "did you mean `wall`"),
        ("name: a\nbatch: {kind: sge}\n", "kind"),
        ("name: a\nlost: soon\n", "lost 'soon' cannot be read; write one like"),
        ("name: a\npilots: {memory: much}\n", "memory 'much'"),
        ("name: a\nmin_pilots: 11\n", "between 0 and max_pilots"),
        ("name: a\npilots: {log_size: 1 kB}\n", "log_size must be at least 65536 bytes"),
        ("name: a\npilots: {keep_failed_max: -1}\n", "nor fewer than none"),
        ("name: a\npilots: {keep_failed: long}\n", "keep_failed 'long' cannot be read"),
        ("max_pilots: 3\n", "name"),
        ("- a\n", "names and values"),
        ("name: [\n", "not YAML"),
        ("name: ../../etc\n", "not a valid name for a site"),
    ],
)
def test_what_is_wrong_is_told_with_the_file(text: str, match: str) -> None:
    with pytest.raises(BadFile, match=match) as told:
        read_site(text, "site.yaml")
    assert told.value.message.startswith("site.yaml:")


def test_every_problem_of_a_file_is_told_with_its_place() -> None:
    text = "max_pilot: 3\nbatch:\n  kind: slurmy\n  wall: 24 parsecs\npilots:\n  checks: {exe: [a]}\nlost: 1 min\n"
    with pytest.raises(BadFile) as told:
        read_site(text, "site.yaml")
    assert [problem.line for problem in told.value.problems] == [1, 3, 4, 6]
    assert "`checks` of `pilots` of a site: 'exe' is not known here" in told.value.problems[3].message


def test_a_file_that_is_not_there_is_no_flow_that_was_refused(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match="there is no such file") as told:
        load_site(tmp_path / "nosuch.yaml")
    assert told.value.refused == "the file was refused"
