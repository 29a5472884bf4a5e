"""Words of the report: text from jobs made plain, figures as people read them."""

import pytest

from mendflow.pages.formatting import duration_text, memory_time_text, one_line, plain_text, size_text


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("10%\r50%\r100%\n", "100%\n"),
        ("a\r\nb", "a\nb"),
        ("\x00nul\x9b31m", "nul31m"),
        ("file\u202etxt.exe", "filetxt.exe"),
    ],
)
def test_text_from_jobs_is_made_plain(said: str, shown: str) -> None:
    assert plain_text(said) == shown


def test_figures_are_told_in_units_that_people_read() -> None:
    assert [size_text(n) for n in (0, 999, 1200, 1_234_567_890, 999_999_999)] == [
        "0 B",
        "999 B",
        "1.2 kB",
        "1.2 GB",
        "1.0 GB",
    ]
    assert [duration_text(n) for n in (0, 840, 4200, 192_000, 7_500_000, 273_600_000)] == [
        "0 ms",
        "840 ms",
        "4.2 s",
        "3 m 12 s",
        "2 h 5 m",
        "3 d 4 h",
    ]
    assert [memory_time_text(n) for n in (0, 0.0005, 0.25, 1.25, 4321)] == [
        "0.0 GB s",
        "1.8 GB s",
        "15.0 GB min",
        "1.2 GB h",
        "4,321.0 GB h",
    ]
    assert one_line("a\n  b\tc", 4) == "a b…"
