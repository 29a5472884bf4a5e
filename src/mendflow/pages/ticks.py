"""The ticks of a time axis and their labels: round numbers in a suitable unit."""

from mendflow.pages.formatting import duration_text

_STEPS_MS = [
    *(unit * step for unit in (1, 10, 100) for step in (1, 2, 5)),
    *(1000 * step for step in (1, 2, 5, 10, 15, 30)),
    *(60_000 * step for step in (1, 2, 5, 10, 15, 30)),
    *(3_600_000 * step for step in (1, 2, 3, 6, 12)),
    *(86_400_000 * step for step in (1, 2, 7, 14, 30, 90, 365)),
]


def time_step_ms(total_ms: int, most: int) -> int:
    """The smallest round step with at most so many ticks."""
    return next((step for step in _STEPS_MS if total_ms / step <= most), max(total_ms, 1))


def time_tick_text(tick_ms: int) -> str:
    """20 m, and not 20 m 0 s."""
    if tick_ms == 0:
        return "0"
    return duration_text(tick_ms).replace(".0 s", " s").removesuffix(" 0 s").removesuffix(" 0 m").removesuffix(" 0 h")
