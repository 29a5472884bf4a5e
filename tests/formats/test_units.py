"""Durations and sizes as people write them."""

import pytest

from mendflow.core.model.units import duration_ms, size_bytes
from mendflow.formats.spelling import nearest_word


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("90 s", 90_000),
        ("90s", 90_000),
        ("1h30m", 5_400_000),
        ("1 h 30 min", 5_400_000),
        ("2 days", 172_800_000),
        ("0.5 s", 500),
        ("250 ms", 250),
        ("1 Week", 604_800_000),
        ("0 s", 0),
    ],
)
def test_a_duration_has_a_unit(text: str, wanted: int) -> None:
    assert duration_ms(text) == wanted


@pytest.mark.parametrize(
    "text", ["", "soon", "5", "5 fortnights", "-3 s", "1h 30", "s", "9" * 40 + " s", "1e9 s", "1h!"]
)
def test_what_is_no_duration_is_none(text: str) -> None:
    assert duration_ms(text) is None


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("2 GB", 2_000_000_000), ("512 MiB", 512 * 1024**2), ("1.5 kB", 1500), ("10 B", 10), ("1tib", 1024**4)],
)
def test_a_size_has_a_unit(text: str, wanted: int) -> None:
    assert size_bytes(text) == wanted


@pytest.mark.parametrize("text", ["", "2", "2 G", "2 GB 3 MB", "much", "999999999999999 PB"])
def test_what_is_no_size_is_none(text: str) -> None:
    assert size_bytes(text) is None


def test_the_nearest_word_is_found_whatever_its_case() -> None:
    assert nearest_word("memry", ["memory", "cpus"]) == "`memory`"
    assert nearest_word("MEMORY", ["memory", "cpus"]) == "`memory`"
    assert nearest_word("xyz", ["memory", "cpus"]) == ""
