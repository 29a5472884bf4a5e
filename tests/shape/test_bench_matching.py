"""The benchmark of matching: its scenes are what they say, in small, and figures are told as they were."""

import pytest

from bench import matching


@pytest.mark.parametrize("name", sorted(matching.SCENES))
def test_every_scene_can_be_played(name: str) -> None:
    found = matching.scene(matching.SCENES[name], 400, 40, 20)
    assert found["matched"] > 0.5
    if name in ("calibration", "idle holders", "nothing there"):
        assert bool(found["with_data"]) == (name != "nothing there")


def test_the_figures_of_each_scene_are_told() -> None:
    figures = {"p50_ms": 0.2, "p99_ms": 0.41, "cpu_p99_ms": 0.4, "with_data": 0.9, "add_us": 3.0}
    kept = {"a_job_with_three": 381, "a_job_without_inputs": 167, "a_file_in_a_cache": 187}
    told = matching.section({"jobs_waiting": 10, "pilots": 2, "scenes": {"spread": figures}, "bytes": kept})
    assert "|spread: each of a million files is read by a few|0.200|0.410|0.400|90%|3.0|" in told
    assert "381 bytes for a waiting job with three inputs, 167 for one without any" in told
