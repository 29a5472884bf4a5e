"""`mendflow sim FLOW`: words become a grid and what jobs do, the answer is told and written, mistakes are sentences."""

import json
import time
from typing import Any

import pytest

from mendflow.cli.forecast import headline, what_if_rows
from mendflow.cli.job_estimates import estimates_from_items, estimates_from_options, spread_s_of
from mendflow.cli.sim_sites import sites_of
from mendflow.core.model.errors import InvalidRequest
from mendflow.core.model.ids import CaseId, ItemId, PilotId
from mendflow.core.model.values import FileRef
from mendflow.core.model.views import AttemptView, ItemView
from mendflow.sim.predict import Distribution, Prediction
from mendflow.sim.what_ifs import WhatIf
from tests.cli.conftest import Shell

FLOW = """
jobs:
  split:
    run: ./split
    expected: 60 s
    inputs: {raw: raw.bin}
    files: {part: part.bin}
  align:
    for-each: ${{ [0, 1, 2, 3, 4, 5, 6, 7] }}
    inputs: {part.bin: "${{ jobs.split.files.part }}"}
    run: ./align
"""
JOBS = {"split": ("part",), "align": ()}


def test_a_flow_is_predicted_and_written_as_a_page_with_charts_and_data(shell: Shell) -> None:  # PJ-11
    shell.write("night.yaml", FLOW)
    shell.write("raw.bin", "x" * 1000)
    words = ("sim", "night.yaml", "--pilots", "4", "--runtime", "align=30+-3", "--size", "split=5MB", "--seeds", "2")
    done = shell(*words, "--out", "out")
    assert done.returncode == 0, done.stderr
    assert "night would take 2 m" in done.stdout
    assert "Bottleneck: " in done.stdout
    assert "seed 2 (2 of 2): completed" in done.stderr
    names = {path.name for path in (shell.folder / "out").iterdir()}
    assert {"index.html", "prediction.json", "running.svg", "running.csv", "what-if.svg"} <= names
    assert "written: out/index.html" in done.stdout
    again = shell.json(*words)
    assert again["prediction"] == json.loads((shell.folder / "out" / "prediction.json").read_text())
    assert again["written"] == []


def test_a_flow_is_predicted_from_a_case_that_ran(shell: Shell) -> None:
    shell.write("f.yaml", "jobs:\n  a: {run: sleep 0.2; echo 1 > o, files: {o: o}}\n  b: {run: 'true', needs: [a]}\n")
    began = time.monotonic()
    shell.ok("run", "f.yaml", "-q")
    took_s = time.monotonic() - began
    made = shell.json("sim", "f.yaml", "--pilots", "1", "--like", "last", "--seeds", "1", "--no-what-if")["prediction"]
    assert made["steps"][0]["name"] == "a"
    assert 0.2 <= made["steps"][0]["run_s"] <= took_s


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--pilots", "2"), "nothing is known of how long these jobs take: align"),
        (("--runtime", "align=3"), "how many pilots?"),
        (("--pilots", "2", "--runtime", "alignn=3"), "did you mean `align`?"),
        (("--pilots", "2", "--like", "last"), "there is nothing at"),
        (("--pilots", "2", "--runtime", "align=3", "--out", "raw.bin"), "is not a folder"),
        (("--pilots", "2", "--runtime", "align=3", "--scale", "2"), "night.yaml is not a trace"),
        (("--pilots", "2", "--runtime", "align=3", "--size-scale", "2"), "night.yaml is not a trace"),
        (("--pilots", "2", "--runtime", "align=3", "--outputs", "align={bad"), "--outputs align: '{bad' is not JSON"),
        (("--runtime", "align=3", "--site", "a:pilots=2,rate=0"), "site a: at 0 bytes a second"),
        (("--runtime", "align=3", "--site", "a:pilots=2", "--site", "a:pilots=3"), "several sites are called a;"),
    ],
)
def test_what_cannot_be_predicted_is_told_in_a_sentence(shell: Shell, words: tuple[str, ...], sentence: str) -> None:
    shell.write("night.yaml", FLOW)
    shell.write("raw.bin", "x")
    done = shell("sim", "night.yaml", *words)
    assert done.returncode in (2, 3, 5)
    assert sentence in done.stderr
    assert done.stdout == ""


def test_a_job_that_fits_no_pilot_is_told_before_anything_is_played(shell: Shell) -> None:
    shell.write("f.yaml", "jobs:\n  a: {run: x, expected: 9 s}\n  b: {run: x, expected: 9 s, cpus: 4, needs: [a]}\n")
    refused = shell("sim", "f.yaml", "--pilots", "2", "--seeds", "1")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "no pilot could ever take the job b: it wants 4 CPUs" in refused.stderr
    assert "seed" not in refused.stderr
    assert refused.stderr.rstrip().endswith("--site site:cpus=4")
    assert "f would take 18." in shell.ok("sim", "f.yaml", "--pilots", "2", "--seeds", "1", "--site", "site:cpus=4")


def test_a_flow_that_needs_what_a_job_gives_fails_there_until_it_is_said(shell: Shell) -> None:
    shell.write(
        "f.yaml",
        "jobs:\n  a: {run: x, expected: 9 s}\n  b:\n    for-each: ${{ jobs.a.outputs.list }}\n    run: x\n"
        "    expected: 5 s\n",
    )
    words = ("sim", "f.yaml", "--pilots", "2", "--seeds", "1", "-q")
    done = shell(*words)
    assert done.returncode == 1
    assert "--outputs JOB=JSON" in done.stdout
    assert shell.json(*words, "--outputs", 'a={"list": [1, 2, 3]}')["prediction"]["jobs"] == 4


def test_the_sizes_of_files_that_a_flow_names_are_said_or_those_on_this_machine(shell: Shell) -> None:
    shell.write("f.yaml", "jobs:\n  a: {run: x, expected: 9 s, inputs: {a: lfn:/store/a, b: raw.bin}}\n")
    shell.write("raw.bin", "x" * 100)
    words = ("sim", "f.yaml", "--pilots", "1", "--seeds", "1", "--no-what-if", "-q")
    refused = shell(*words)
    assert refused.returncode == 2
    assert "how large is lfn:/store/a?" in refused.stderr
    small, large = (
        shell.json(*words, "--size", "lfn:/store/a=1GB", *more)["prediction"]["steps"][0]["stage_in_s"]
        for more in ((), ("--size", "./raw.bin=5GB"))
    )
    assert 0 < 4 * small < large


def prediction(**more: object) -> Prediction:
    took = Distribution(mean=3180.0, deviation=0.0, least=3180.0, most=3180.0)
    numbers: dict[str, Any] = dict.fromkeys(Prediction.__struct_fields__, 0)
    numbers |= {"flow": "f", "status": "failed", "fault": "why", "turnaround_s": took, "bottleneck": "b"}
    return Prediction(**numbers | {"steps": (), "what_ifs": (), "running": (), "runs": 8} | more)


@pytest.mark.parametrize(
    ("failed", "sentence"),
    [
        (0, "f would take 53 m 0 s"),
        (1, "1 of 8 runs of f fails (why); the others take 53 m 0 s"),
        (7, "7 of 8 runs of f fail (why); the other one takes 53 m 0 s"),
        (8, "f failed in the simulated world, in each of 8 runs: why"),
    ],
)
def test_the_first_sentence_says_how_many_runs_fail(failed: int, sentence: str) -> None:
    assert headline(prediction(failed_runs=failed)) == sentence


def test_what_a_better_world_costs_and_how_many_runs_fail_there_stand_in_its_row() -> None:
    worse = WhatIf(what="w", name="more", turnaround_s=3600.0, failed_runs=0, pairs=7, gain=-0.132, noise=0.02)
    same = WhatIf(what="w", name="same", turnaround_s=3180.0, failed_runs=0, pairs=7, gain=-0.0, noise=0.0)
    none = WhatIf(what="w", name="none", turnaround_s=None, failed_runs=8, pairs=0, gain=0.0, noise=0.0)
    assert what_if_rows(prediction(what_ifs=(worse, same))) == [
        ("what if", "turnaround", "saved"),
        ("as it is", "53 m 0 s", "-"),
        ("more", "1 h 0 m", "-13.2 ± 2.0 %"),
        ("same", "53 m 0 s", "0.0 %"),
    ]
    assert what_if_rows(prediction(what_ifs=(none,), failed_runs=1))[1:] == [
        ("as it is", "53 m 0 s", "-", "1 of 8"),
        ("none", "-", "-", "8 of 8"),
    ]


@pytest.mark.parametrize(
    ("text", "spread"), [("90", (90, 0)), ("90+-10", (90, 10)), ("2 min ± 20 s", (120, 20)), ("1h30m", (5400, 0))]
)
def test_a_time_is_seconds_or_has_a_unit_and_a_deviation(text: str, spread: tuple[float, float]) -> None:
    assert spread_s_of("--runtime", text) == spread


def test_what_options_say_of_a_job_comes_together() -> None:
    made = estimates_from_options(
        ["align=30+-5", "*=1"], ["split.part=2GB", "align=5", "inputs.x=3"], ['split={"n": 2}'], JOBS
    )
    assert (made["align"].seconds, made["align"].spread_s, made["align"].file_bytes) == (30, 5, 5)
    assert (made["split"].files, made["split"].outputs) == ({"part": 2_000_000_000}, {"n": 2})
    assert made["*"].seconds == 1
    assert "inputs" not in made


@pytest.mark.parametrize(
    ("runtimes", "sizes", "sentence"),
    [
        (["align"], [], "has no name or no value"),
        (["align=-3"], [], "not negative"),
        (["align=nan"], [], "cannot be read"),
        ([], ["split.parts=3MB"], "did you mean `part`?"),
        ([], ["split.part=much"], "bytes, or a size like"),
    ],
)
def test_what_options_cannot_mean_is_refused(runtimes: list[str], sizes: list[str], sentence: str) -> None:
    with pytest.raises(InvalidRequest, match=r".*") as refused:
        estimates_from_options(runtimes, sizes, [], JOBS)
    assert sentence in refused.value.message


def test_an_earlier_case_tells_durations_by_name_and_sizes_and_outputs_by_item() -> None:
    def item(turn: int, took_ms: int, end: str = "completed") -> ItemView:
        attempt = AttemptView(
            number=1,
            pilot=PilotId("p"),
            granted_at=1,
            started_at=1000,
            ended_at=1000 + took_ms,
            end=end,
            fault=None,
            cpu_ms=0,
            peak_bytes=0,
        )
        return ItemView(
            case=CaseId("c"),
            item=ItemId(f"a[{turn}]"),
            name="a",
            kind="job",
            serial=turn,
            state="completed",
            attempts=[attempt],
            outputs={"n": turn},
            files={"o": FileRef(sha256="0" * 64, bytes=7 * turn, name="o").as_value()},
        )

    made = estimates_from_items([item(0, 500), item(1, 1500), item(2, 9000, end="failed")])
    assert made["a"].samples == (0.5, 1.5)
    assert (made["a[1]"].files, made["a[1]"].outputs) == ({"o": 7}, {"n": 1})


def test_pilots_are_spread_over_the_sites_that_say_nothing_of_pilots() -> None:
    one, two, own = sites_of(["a:delay=0.15,failure=0.03,share=site", "b:hosts=3", "c:pilots=5,cache=none"], 7)
    assert (one.running, two.running, own.running) == (4, 3, 5)
    assert (one.element.delay, one.element.failure, one.share) == (0.15, 0.03, "site")
    assert (one.hosts, two.hosts, own.hosts) == (1, 3, 1)
    assert not own.caches
    [alone] = sites_of([], 20)
    assert (alone.running, alone.hosts, alone.share) == (20, 3, "host")


def test_a_site_file_says_what_pilots_it_gets_and_the_rest_stands_beside(shell: Shell) -> None:
    path = shell.write(
        "cluster.yaml",
        "name: cluster\nmax_pilots: 40\nmin_idle: 2\nbatch: {kind: slurm, wall: 4 h}\n"
        "pilots: {slots: 2, share: site, cache: 20 GB}\n",
    )
    [site] = sites_of([f"{path}:queue=5 min +- 1 min,submit=2"], 0)
    assert (site.name, site.max_pilots, site.min_idle, site.slots, site.share) == ("cluster", 40, 2, 2, "site")
    assert (site.life_s, site.cache_bytes) == (4 * 3600, 20_000_000_000)
    assert (site.batch.queue_s, site.batch.submit_s) == ((300.0, 60.0), (2.0, 0.0))


@pytest.mark.parametrize(
    ("sites", "pilots", "sentence"),
    [
        (["a:pilot=3"], 0, "did you mean `pilots`?"),
        (["a:pilots=3.5"], 0, "not a whole number"),
        (["a:pilots=9999999"], 0, "up to 100,000"),
        (["a:share=all"], 3, "none, host or site"),
        (["a:policy=foo"], 3, "there is no cache policy 'foo'"),
        (["a:delay"], 3, "has no value"),
        ([":delay=3"], 3, "has no name"),
        (["a:pilots=3"], 3, "--pilots cannot be used"),
        (["a"], 0, "how many pilots?"),
        ([], 99999999999, "--pilots '99999999999' is not a whole number up to 100,000"),
    ],
)
def test_a_site_that_cannot_be_is_refused(sites: list[str], pilots: int, sentence: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        sites_of(sites, pilots)
    assert sentence in refused.value.message


def test_whatever_is_no_word_of_the_simulator_is_the_file_of_a_flow(shell: Shell) -> None:
    for words in (("nowhere.yaml", "--pilots", "2"), ("--pilots", "2", "nowhere.yaml")):
        done = shell("sim", *words)
        assert done.returncode == 2
        assert "nowhere.yaml: there is no such file" in done.stderr
    for word, hint in (("compar", "did you mean `compare`?"), ("nofile", "give a flow file, or `compare TRACE`")):
        done = shell("sim", word)
        assert done.returncode == 2
        assert f"{word}: there is no such file; {hint}" in done.stderr
    helped = shell.ok("sim", "--help")
    assert all(word in helped for word in ("compare", "FLOW"))
